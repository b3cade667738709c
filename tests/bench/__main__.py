"""Runs all measurements, or those that are named: ``python -m tests.bench http state``."""

import sys

from tests.bench import clock, http, memory, plugin, projects, startup, state

ALL = {
    "startup": startup.main,
    "http": http.main,
    "clock": clock.main,
    "memory": memory.main,
    "projects": projects.main,
    "state": state.main,
    "plugin": plugin.main,
}

for name in sys.argv[1:] or ALL:
    ALL[name]()
