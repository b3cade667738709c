"""The lock under which modules are loaded after the start.

Many modules are imported by the function that needs them, so that the program starts fast. Python locks each
module while it loads, but not a package: of two threads that enter urllib3, ruamel.yaml or prometheus_client
at different places, one gets half a module or a deadlock, and pygments replaces its own modules while they
load. So one thread loads at a time, and a test checks that every import in a function is under ``LOADING``
(those of the standard library need no lock, nor do commands, which load before they start threads).

The lock also guards what else is made only once and can be made by one thread only: syntax trees, since
some versions of CPython count the depth of all trees in one place.

It comes after all locks in ``projects/locks.py``. No module acquires a lock while it loads.
"""

import os
from threading import RLock
from typing import Final

LOADING: Final = RLock()

if hasattr(os, "register_at_fork"):  # a copy would stay locked if another thread loads at that moment
    os.register_at_fork(
        before=LOADING.acquire, after_in_child=LOADING.release, after_in_parent=LOADING.release
    )
