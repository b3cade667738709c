"""Compares a server that implements this API, or its recorded traffic, with the sandbox.

No other package imports it.
"""
