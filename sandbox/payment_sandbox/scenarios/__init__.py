"""Scenarios: rules that decide the outcome of attempts, webhooks and requests.

Others import all of its modules.
"""
