"""The fidelity ledger: every rule that the sandbox follows, with its source.

Others import ``ledger``.
"""
