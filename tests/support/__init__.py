"""Helpers that several test modules share: a project driver, a payer, a shop, and checks."""
