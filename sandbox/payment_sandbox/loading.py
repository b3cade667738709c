"""The lock for lazy imports.

Many modules are imported inside functions, so that the program starts fast. Python locks each
module while it loads, but not a package: if two threads import different modules of urllib3, ruamel.yaml or
prometheus_client, one gets a partial module or a deadlock, and pygments replaces its own modules while they
load. Therefore one thread loads at a time, and a test checks that every import in a function holds
``LOADING`` (except standard library imports, and imports in commands, which run before any threads start).

The lock also guards the parsing of Python code, since some versions of CPython count the depth of all
syntax trees in one place.

Acquire this lock after all locks in ``projects/locks.py``. No module acquires a lock while it loads.
"""

import os
from threading import RLock
from typing import Final

LOADING: Final = RLock()

if hasattr(os, "register_at_fork"):  # a copy would stay locked if another thread was loading at the fork
    os.register_at_fork(
        before=LOADING.acquire, after_in_child=LOADING.release, after_in_parent=LOADING.release
    )
