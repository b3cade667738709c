"""Delivery: the senders of each project's outbox, and the receivers of its webhooks.

Other packages may import ``receivers`` and ``sending``.
"""
