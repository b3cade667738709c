"""Runs all measurements, or those that are named: ``python -m tests.bench http clock memory startup``."""

import sys

from tests.bench import clock, http, memory, startup

ALL = {"startup": startup.main, "http": http.main, "clock": clock.main, "memory": memory.main}

for name in sys.argv[1:] or ALL:
    ALL[name]()
