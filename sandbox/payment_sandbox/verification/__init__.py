"""Verification: does a server of this API behave as the sandbox says?"""
