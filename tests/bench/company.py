"""Benchmark of several servers on a PostgreSQL database, against one server without a database."""

import gc
import json
import tracemalloc
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

from payment_sandbox_company.cluster import ClusterRegistry
from tests.bench import paired, report, seconds
from tests.bench.bodies import BODY
from tests.bench.http import HEADERS, send, send_many, serve
from tests.support import postgres
from tests.support.ports import free_port
from tests.support.servers import make_server

CLIENTS = 16
REQUESTS = 25  # per client
ROUNDS = 7
PROJECTS = 10_000
ACTIVE = 1_000


def main() -> None:
    """Report creations, reads, and two workers."""
    if postgres.binaries() is None:
        print("PostgreSQL is not installed: its benchmarks are skipped")
        return
    with TemporaryDirectory() as folder, postgres.running("fsync=on") as database, ExitStack() as stack:
        state = database.new_database()
        connections = [stack.enter_context(serve(state)) for _ in range(2)]
        one = _address(connections[0])
        in_memory = stack.enter_context(serve())
        memory = _address(in_memory)
        file = _address(stack.enter_context(serve(str(Path(folder) / "state.db"))))
        for name, other in (("memory", memory), ("SQLite", file)):
            work, reference = (
                partial(_create_concurrently, address, _projects(address)) for address in (one, other)
            )
            aim = ">= 0.35" if other is memory else "none"
            label = f"creations per second of {CLIENTS} clients, PostgreSQL / {name}"
            report(label, paired(work, reference, ROUNDS), aim)
        reads, reference = (partial(_reads, connection) for connection in (connections[0], in_memory))
        report("reads per second, PostgreSQL / memory", paired(reads, reference, ROUNDS), ">= 0.50")
    with postgres.running() as database:
        _workers(database)
    many_projects()


def _reads(connection: HTTPConnection) -> None:
    order = json.loads(send(connection, "POST", "/v1/orders/", BODY))
    send_many(connection, "GET", f"/v1/orders/{order['id']}/")


def many_projects() -> None:
    """Report the memory of an idle project, and the cost of an order in an unloaded project."""
    with (
        postgres.running() as database,
        make_server(clock="frozen", seed=1, state=database.new_database()) as server,
    ):
        assert server.cluster is not None
        address = server.url.removeprefix("http://")
        connection = HTTPConnection(address)
        _order_in_each(connection, [_project(connection)])
        keys = [""] * PROJECTS
        tracemalloc.start()
        before = _traced_kib()
        for number in range(PROJECTS):
            keys[number] = _project(connection)
        used_kib = (_traced_kib() - before) / PROJECTS
        assert isinstance(server.registry, ClusterRegistry)
        server.registry.drop_idle(-1.0)
        report(
            f"KiB in the server of an idle project, one of {PROJECTS}",
            (_traced_kib() - before) / PROJECTS,
            "<= 1",
        )
        report("KiB in the server of a project that is used", used_kib, "none")
        tracemalloc.stop()
        active = keys[:: PROJECTS // ACTIVE]
        first, second = (seconds(partial(_order_in_each, connection, active)) for _ in range(2))
        report("an order in a forgotten project / in one that is used", first / second, "none")


def _traced_kib() -> float:
    gc.collect()
    return tracemalloc.get_traced_memory()[0] / 1024


def _order_in_each(connection: HTTPConnection, keys: Sequence[str]) -> None:
    for key in keys:
        connection.request("POST", "/v1/orders/", BODY, {**HEADERS, "Authorization": key})
        connection.getresponse().read()


def _workers(database: postgres.Postgres) -> None:
    with _serving(database.new_database(), "1") as one, _serving(database.new_database(), "2") as two:
        work, reference = (
            partial(_create_concurrently, address, _projects(address)) for address in (two, one)
        )
        report(
            "creations per second, two workers / one (2 processors)",
            paired(work, reference, ROUNDS),
            ">= 1.20",
        )


@contextmanager
def _serving(state: str, workers: str) -> Iterator[str]:
    port = str(free_port())
    command = [executable, "-m", "payment_sandbox", "serve", "--quiet", "--port", port, "--state", state]
    with Popen([*command, "--workers", workers], stdout=PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            started = perf_counter()
            while perf_counter() - started < 3:  # the other workers start a moment later
                send(HTTPConnection(f"127.0.0.1:{port}"), "GET", "/health/")
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def _address(connection: HTTPConnection) -> str:
    return f"{connection.host}:{connection.port}"


def _projects(address: str) -> list[str]:
    """Return the Authorization headers of new projects, one per client."""
    return [_project(HTTPConnection(address)) for _ in range(CLIENTS)]


def _project(connection: HTTPConnection) -> str:
    """Return the Authorization header of a new project."""
    key = json.loads(send(connection, "POST", "/control/projects/", b"{}"))["api_key"]
    return f"Basic {b64encode(f'{key}:'.encode()).decode()}"


def _create_concurrently(address: str, keys: Sequence[str]) -> None:
    """Create orders from many clients at the same time, each with its own connection and project."""

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
