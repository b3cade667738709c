"""Runs all benchmarks, or the named ones: ``python -m tests.bench startup memory``."""

import sys

from tests.bench import instructions, memory, merchants, startup

ALL = {
    "startup": startup.main,
    "instructions": instructions.main,
    "memory": memory.main,
    "merchants": merchants.main,
}

for name in sys.argv[1:] or ALL:
    ALL[name]()
