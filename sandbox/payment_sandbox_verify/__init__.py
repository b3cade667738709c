"""Compares a server of this API, or its recorded traffic, with the sandbox.

Others import nothing of it.
"""
