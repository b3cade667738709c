"""The same test of a small shop with different tools, one file per tool; see ``tests.bench.merchants``."""
