"""A small shop that takes payments, and its tests. Copy it as a starting point."""
