"""Verification: does a server of this API behave as the sandbox says?

Others import ``checks``, ``comparing``, ``made``, ``probing``, ``recorded``, ``service`` and ``verifying``.
"""
