"""The same test of a small shop with the fixtures and with responses; see ``tests.bench.merchants``."""
