"""One of several servers on a database; ``--without-lock`` breaks its locks to test the attack."""

import signal
import sys

from payment_sandbox_company import postgresql
from tests.support.servers import make_server


def break_lock() -> None:
    """Let servers change a project concurrently, and overwrite each other's changes."""
    unlocked = postgresql.LOCK_PROJECT.replace(" FOR UPDATE", "")
    careless = postgresql.WRITE_CHANGES.replace("AND version = %(version)s", "")
    assert (unlocked, careless) != (postgresql.LOCK_PROJECT, postgresql.WRITE_CHANGES)
    postgresql.LOCK_PROJECT, postgresql.WRITE_CHANGES = unlocked, careless  # type: ignore[misc]


state, port, *options = sys.argv[1:]
if "--without-lock" in options:
    break_lock()
with make_server(state=state, port=int(port)) as server:
    print(server.url, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
