"""The domain: orders, payment attempts, authorizations, refunds, stored cards and webhooks.

Other packages may import any of its modules.
"""
