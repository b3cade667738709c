"""Delivery: the outbox of each epoch, and the receivers of its webhooks.

Other packages may import ``outbox``, ``receivers`` and ``sending``.
"""
