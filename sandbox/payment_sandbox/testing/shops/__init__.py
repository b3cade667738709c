"""Webhooks and requests for a merchant's application in this process."""
