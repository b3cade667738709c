"""The domain: orders, payment attempts, authorizations, refunds, stored cards and webhooks.

Other packages import any of its modules.
"""
