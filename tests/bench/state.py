"""What a state file costs, over HTTP."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import paired, report
from tests.bench.bodies import BODY
from tests.bench.http import many, served

ROUNDS = 21


def main() -> None:
    """Creations with a state file against creations without one."""
    with (
        TemporaryDirectory() as folder,
        served(str(Path(folder) / "state.db")) as kept,
        served() as memory,
    ):
        with_file, without = (
            partial(many, connection, "POST", "/v1/orders/", BODY) for connection in (kept, memory)
        )
        report("creations per second with --state / without", paired(with_file, without, ROUNDS), ">= 0.70")
