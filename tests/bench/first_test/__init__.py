"""The same test of a small shop, written in several ways, each a file to copy; see ``tests.bench.merchants``."""
