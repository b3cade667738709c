"""Mutants: for each rule of the ledger, a small change to the source that breaks it and fails its tests."""
