"""Scenarios: rules for the outcome of attempts, webhooks and requests.

Other packages may import any of its modules.
"""
