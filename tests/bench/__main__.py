"""Runs all benchmarks, or the named ones: ``python -m tests.bench http memory``."""

import os
import sys

from tests.bench import http, instructions, memory, merchants, startup, today

ALL = {
    "startup": startup.main,
    "http": http.main,
    "instructions": instructions.main,
    "memory": memory.main,
    "merchants": merchants.main,
}

if today.VARIABLE in os.environ:
    today.main()
else:
    for name in sys.argv[1:] or ALL:
        ALL[name]()
