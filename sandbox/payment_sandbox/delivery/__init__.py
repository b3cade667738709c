"""Delivery: the outbox of each epoch, and the receivers of its webhooks.

Other packages import ``listener``, ``outbox`` and ``sending``.
"""
