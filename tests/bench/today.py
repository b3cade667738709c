"""Benchmark of pairs with another commit, built beside the checkout: ``make bench today=COMMIT``."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from io import BytesIO
from pathlib import Path
from tarfile import open as open_archive
from typing import Final

from tests.bench import report
from tests.bench.bodies import BODY
from tests.bench.http import send
from tests.bench.merchants import FILES, FIXTURES, run
from tests.bench.startup import connect, seconds_to_response
from tests.support.ports import free_port

VARIABLE: Final = "today"  # the commit
ROUNDS: Final = 7
REQUESTS: Final = 2000
ROOT: Final = Path(__file__).parents[2]


def build(commit: str, folder: Path) -> Path:
    """Unpack the sources of a commit; return the folder of its packages."""
    archive = subprocess.run(
        ["git", "archive", commit, "sandbox", "scenarios"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with open_archive(fileobj=BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "sandbox"


@contextmanager
def packages_of(sources: Path) -> Iterator[None]:
    """Let the processes that start in the context use the packages in a folder."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(sources)
    yield
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


def ticks_of(process: int) -> int:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def ticks_of_requests(*, reads: bool) -> float:
    """Return the processor time that a server needs for creations, or for reads of one order."""
    port = free_port()
    command = [sys.executable, "-m", "payment_sandbox", "serve", "--quiet", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        connect(port, server).close()
        connection = HTTPConnection(f"127.0.0.1:{port}")
        creation = ("POST", "/v1/orders/", BODY)
        order = json.loads(send(connection, *creation))
        for _ in range(REQUESTS // 4):
            send(connection, *creation)
        before = ticks_of(server.pid)
        for _ in range(REQUESTS * (4 if reads else 1)):
            send(connection, *(("GET", f"/v1/orders/{order['id']}/") if reads else creation))
        ticks = ticks_of(server.pid) - before
        connection.close()
        server.terminate()
    return ticks


def main() -> None:
    """Report the pairs; each figure is this checkout's over the commit's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        theirs, ours = build(os.environ[VARIABLE], folder / "today"), ROOT / "sandbox"
        shutil.copy(FILES / "shop.py", folder)
        shutil.copy(FILES / f"{FIXTURES}.py", folder / f"test_{FIXTURES}.py")

        def compare(label: str, measure: Callable[[Path], float], aim: str) -> None:
            ratios = []
            for _ in range(ROUNDS + 1):
                figures = []
                for sources in (ours, theirs):
                    with packages_of(sources):
                        figures.append(measure(folder / f"cache-{sources.parent.name}"))
                ratios.append(figures[0] / figures[1])
            report(f"{label} / {os.environ[VARIABLE]}'s", ratios[1:], aim)

        compare("exec to first /health/", lambda cache: seconds_to_response(str(cache)), "<= 0.70")
        compare("processor time of a creation", lambda _: ticks_of_requests(reads=False), "<= 0.75")
        compare("processor time of a read", lambda _: ticks_of_requests(reads=True), "<= 0.80")
        compare("300 tests with the fixtures", lambda cache: run(folder, FIXTURES, cache), "<= 0.75")
