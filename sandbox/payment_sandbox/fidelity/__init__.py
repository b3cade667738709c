"""The fidelity ledger: every rule that the sandbox plays by, and where each comes from."""
