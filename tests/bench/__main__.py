"""Runs all measurements, or those that are named: ``python -m tests.bench http state``."""

import sys

from tests.bench import (
    clock,
    company,
    http,
    keep,
    memory,
    merchants,
    peers,
    plugin,
    printing,
    projects,
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
    keep()
