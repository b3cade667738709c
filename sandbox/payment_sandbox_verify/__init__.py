"""Compares a server that implements this API with the sandbox.

No other package imports it.
"""
