"""Several servers on a PostgreSQL database, against one server without: what a company pays for it."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from subprocess import PIPE, Popen
from sys import executable
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.bench import paired, report
from tests.bench.bodies import BODY
from tests.bench.http import HEADERS, many, send, served
from tests.support import postgres
from tests.support.ports import free_port

CLIENTS = 16
REQUESTS = 25  # of each client
ROUNDS = 7


def main() -> None:
    """Creations, reads that are passed on, two workers, and how long a take-over takes."""
    if postgres.binaries() is None:
        print("PostgreSQL is not installed: nothing of it is measured")
        return
    with TemporaryDirectory() as folder, postgres.running("fsync=on") as database, ExitStack() as ends:
        state = database.new_database()
        connections = [ends.enter_context(served(state)) for _ in range(2)]
        one = _address(connections[0])
        memory = _address(ends.enter_context(served()))
        file = _address(ends.enter_context(served(str(Path(folder) / "state.db"))))
        for name, other in (("memory", memory), ("SQLite", file)):
            work, reference = (partial(_at_once, address, _projects(address)) for address in (one, other))
            aim = ">= 0.50" if other is memory else "none"
            what = f"creations per second of {CLIENTS} clients, PostgreSQL / {name}"
            report(what, paired(work, reference, ROUNDS), aim)
        order = json.loads(send(connections[0], "POST", "/v1/orders/", BODY))
        passed_on, direct = (
            partial(many, connection, "GET", f"/v1/orders/{order['id']}/") for connection in connections[::-1]
        )
        ratios = [1 / ratio for ratio in paired(passed_on, direct, ROUNDS)]
        report("a read that is passed on / one that is not", ratios, "<= 1.50")
    with postgres.running() as database:
        _workers(database)


def _workers(database: postgres.Postgres) -> None:
    with _serving(database.new_database(), "1") as one, _serving(database.new_database(), "2") as two:
        work, reference = (partial(_at_once, address, _projects(address)) for address in (two, one))
        report(
            "creations per second, two workers / one (2 processors)",
            paired(work, reference, ROUNDS),
            ">= 1.60",
        )


@contextmanager
def _serving(state: str, workers: str) -> Iterator[str]:
    port = str(free_port())
    command = [executable, "-m", "payment_sandbox", "serve", "--quiet", "--port", port, "--state", state]
    with Popen([*command, "--workers", workers], stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            begun = perf_counter()
            while perf_counter() - begun < 3:  # the other workers come a moment later
                send(HTTPConnection(f"127.0.0.1:{port}"), "GET", "/health/")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _address(connection: HTTPConnection) -> str:
    return f"{connection.host}:{connection.port}"


def _projects(address: str) -> list[str]:
    """The authorizations of as many projects as there are clients."""
    return [_project(address) for _ in range(CLIENTS)]


def _project(address: str) -> str:
    """The authorization of a new project."""
    key = json.loads(send(HTTPConnection(address), "POST", "/control/projects/", b"{}"))["api_key"]
    return f"Basic {b64encode(f'{key}:'.encode()).decode()}"


def _at_once(address: str, keys: Sequence[str]) -> None:
    """Orders of many clients at the same time, each on a connection and in a project of its own."""

    def create(number: int) -> None:
        headers = {**HEADERS, "Authorization": keys[number]}
        connection = HTTPConnection(address)
        for _ in range(REQUESTS):
            connection.request("POST", "/v1/orders/", BODY, headers)
            answer = connection.getresponse()
            assert answer.status == 201, answer.read()
            answer.read()
        connection.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(create, range(CLIENTS)))
