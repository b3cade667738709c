"""Limits of what a reader of the code has to follow: calls and modules per request."""
