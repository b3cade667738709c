"""Scenarios: rules for the outcome of attempts, webhooks and requests.

Other packages import any of its modules.
"""
