"""The domain: orders, attempts to pay them, authorizations, refunds, stored cards and webhooks owed."""
