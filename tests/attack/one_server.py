"""One of several servers on a database; ``--without-fence`` breaks it, to see that an attack notices."""

import signal
import sys

from payment_sandbox.serving.cluster import Cluster
from payment_sandbox.serving.server import Server
from payment_sandbox.storage import postgresql


def break_fence() -> None:
    """Let it write, and serve, what it does not own any more."""
    without = postgresql.COMMIT.replace("AND p.token = new.token", "")
    assert without != postgresql.COMMIT
    postgresql.COMMIT = without  # type: ignore[misc]
    beat = Cluster._beat

    def never_lapse(self: Cluster) -> None:
        self._valid_until_seconds = float("inf")
        beat(self)
        self._valid_until_seconds = float("inf")

    Cluster._beat = never_lapse  # type: ignore[method-assign]


state, port, *options = sys.argv[1:]
if "--without-fence" in options:
    break_fence()
with Server(state=state, port=int(port)) as server:
    print(server.url, flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})
