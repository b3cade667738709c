"""Benchmark of a state file, over HTTP."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import paired, report
from tests.bench.bodies import BODY
from tests.bench.http import send_many, serve

ROUNDS = 21


def main() -> None:
    """Report creations with a state file against creations without one."""
    with (
        TemporaryDirectory() as folder,
        serve(str(Path(folder) / "state.db")) as on_file,
        serve() as in_memory,
    ):
        with_file, without = (
            partial(send_many, connection, "POST", "/v1/orders/", BODY) for connection in (on_file, in_memory)
        )
        report("creations per second with --state / without", paired(with_file, without, ROUNDS), ">= 0.70")
