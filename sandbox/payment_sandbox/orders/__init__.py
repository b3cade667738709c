"""The domain: orders, payment attempts, authorizations, refunds, stored cards and webhooks.

Others import all of its modules.
"""
