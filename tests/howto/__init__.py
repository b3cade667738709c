"""Runs the examples in the documentation, unchanged."""
