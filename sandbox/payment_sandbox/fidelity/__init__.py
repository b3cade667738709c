"""The fidelity ledger: every rule that the sandbox follows, and its source.

Others import ``ledger``.
"""
