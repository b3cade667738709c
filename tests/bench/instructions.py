"""The instructions that a call costs the whole serving process, which other load does not change.

``valgrind`` counts them; ``python -m tests.bench instructions`` prints them.
"""

import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.bench.bodies import BODY

WARM_UP = 30
CALLS = 100
ROUNDS = 3
TOTAL = re.compile(r"^summary: (\d+)", re.MULTILINE)
DUMP = re.compile(r"^desc: Trigger: dump (\w+)", re.MULTILINE)


HEADERS = {
    "Authorization": f"Basic {b64encode(b'sandbox-key:').decode()}",
    "Content-Type": "application/json",
}


class Cost(NamedTuple):
    """The instructions of one creation and of one read."""

    creation: float
    read: float


def send(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> bytes:
    """Send a request on a connection that stays open; return the body of its response."""
    connection.request(method, path, body, HEADERS)
    return connection.getresponse().read()


def measure(module: str) -> Cost:
    """Return what a call costs the server that a module starts: the least of some rounds."""
    with TemporaryDirectory() as folder, _counted(module, Path(folder)) as (process, url):
        connection = HTTPConnection(url.partition("://")[2])
        order = json.loads(send(connection, "POST", "/v1/orders/", BODY))
        create = partial(send, connection, "POST", "/v1/orders/", BODY)
        read = partial(send, connection, "GET", f"/v1/orders/{order['id']}/")
        for _ in range(WARM_UP):
            create()
            read()
        _control(process, "--instr=on")
        create()  # which begins with what the interpreter does once
        _control(process, "--zero")
        for number in range(ROUNDS):
            for name, call in (("creation", create), ("read", read)):
                for _ in range(CALLS):
                    call()
                _control(process, f"--dump={name}{number}")
        connection.close()
        process.communicate("")
        return _least(Path(folder))


@contextmanager
def _counted(module: str, folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    tool = ["valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no"]
    command = [*tool, f"--callgrind-out-file={folder}/counts", sys.executable, "-m", module]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def _control(process: "subprocess.Popen[str]", command: str) -> None:
    control = ["callgrind_control", command, str(process.pid)]
    subprocess.run(control, check=True, capture_output=True, timeout=60)


def _least(folder: Path) -> Cost:
    counts: dict[str, list[float]] = {"creation": [], "read": []}
    for file in folder.glob("counts.*"):
        text = file.read_text(encoding="utf-8")
        if (dump := DUMP.search(text)) and (total := TOTAL.search(text)):
            counts[dump[1].rstrip("0123456789")].append(int(total[1]) / CALLS)
    return Cost(min(counts["creation"]), min(counts["read"]))


def ratios() -> Cost:
    """Return the instructions of the sandbox's calls, as multiples of those of a little application."""
    ours, reference = measure("tests.bench.served"), measure("tests.bench.reference_app")
    return Cost(ours.creation / reference.creation, ours.read / reference.read)


def main() -> None:
    """Print the instructions, in thousands, and their ratios to the reference."""
    for name in ("served", "reference_app"):
        cost = measure(f"tests.bench.{name}")
        print(
            f"{name}: creation {cost.creation / 1000:,.0f}, read {cost.read / 1000:,.0f} thousand instructions"
        )
