"""Runs all benchmarks, or the named ones: ``python -m tests.bench http state``."""

import sys

from tests.bench import (
    clock,
    company,
    http,
    memory,
    merchants,
    peers,
    plugin,
    printing,
    projects,
    save_ratios,
    startup,
    state,
)

ALL = {
    "startup": startup.main,
    "http": http.main,
    "printing": printing.main,
    "peers": peers.main,
    "clock": clock.main,
    "memory": memory.main,
    "projects": projects.main,
    "state": state.main,
    "company": company.main,
    "plugin": plugin.main,
    "merchants": merchants.main,
}

names = [name for name in sys.argv[1:] if name != "--keep"]
for name in names or ALL:
    ALL[name]()
if "--keep" in sys.argv:
    save_ratios()
