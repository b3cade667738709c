"""The fidelity ledger: every rule that the sandbox follows, with its source.

Other packages may import ``ledger``.
"""
