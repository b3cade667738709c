"""Mutants: for each rule of the ledger a small change of the source that breaks it, and that its tests must see."""
