"""The domain: orders, payment attempts, authorizations, refunds, stored cards and webhooks."""
