"""Compares a server of this API, or its recorded traffic, with the sandbox.

No other package imports it.
"""
