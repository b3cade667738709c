"""Delivery: the outbox of each epoch, and the receivers of its webhooks.

Other packages import ``outbox``, ``receivers`` and ``sending``.
"""
