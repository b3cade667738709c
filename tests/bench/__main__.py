"""Runs all benchmarks, or the named ones: ``python -m tests.bench http state``."""

import sys

from tests.bench import clock, http, memory, merchants, peers, save_ratios, startup, state

ALL = {
    "startup": startup.main,
    "http": http.main,
    "peers": peers.main,
    "clock": clock.main,
    "memory": memory.main,
    "state": state.main,
    "merchants": merchants.main,
}

names = [name for name in sys.argv[1:] if name != "--keep"]
for name in names or ALL:
    ALL[name]()
if "--keep" in sys.argv:
    save_ratios()
