"""Storage backends for the tests of behaviour that all backends share."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import Registry, Storages
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.storage.rows import StoredProject
from payment_sandbox.storage.snapshot import restore
from payment_sandbox.storage.sqlite import StateFile, read_copy
from tests.support.full_disk import full
from tests.support.postgres import Postgres
from tests.support.projects import catalogue

OLDER: Final = json.loads((Path(__file__).parent / "golden" / "snapshot-2.json").read_text())
ANSWER: Final = {
    "id": "0",
    "at": OLDER["now"],
    "of": "POST /v1/orders/ 0",
    "status": 201,
    "etag": None,
    "order_id": OLDER["orders"][0]["id"],
    "body": "{}",
}
GOLDEN: Final = OLDER | {"answers": [ANSWER]}
SERVICES: Final = Services(REAL_TIME)
NOON: Final = "frozen@2027-01-01T12:00:00Z"


@dataclass
class Backend:
    """A storage backend under test."""

    name: str
    storages: Storages
    stored: Callable[[], Sequence[StoredProject]]
    refuse_commits: Callable[[], AbstractContextManager[Any]]
    """A context in which the backend refuses every commit."""


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Each storage backend in turn."""
    if request.param == "memory":
        yield Backend(request.param, MemoryStorage(), list, nullcontext)
    elif request.param == "sqlite":
        file = StateFile(tmp_path / "state.db")
        yield Backend(request.param, file, lambda: read_copy(file.path)[1], lambda: full(file))
        file.close()
    else:
        yield from _in_postgresql(request.getfixturevalue("postgresql"))


@pytest.fixture
def durable(backend: Backend) -> Backend:
    """Each backend that stores projects, in turn."""
    if backend.name == "memory":
        pytest.skip("memory stores nothing")
    return backend


def _in_postgresql(server: Postgres) -> Iterator[Backend]:
    from payment_sandbox_company.cluster import JoinedDatabase  # imported late: the driver is optional

    address = server.new_database()
    database = JoinedDatabase(address, "this-server", REAL_TIME)
    name = address.rpartition("/")[2]

    def stored() -> list[StoredProject]:
        projects = server.execute(
            "SELECT id, identity, chosen, counters FROM sandbox_project ORDER BY position", name
        )
        records = "SELECT kind, body FROM sandbox_record WHERE project = '{}' AND kind <> 'jobs' AND body IS NOT NULL ORDER BY position"
        newest = "SELECT max(number) FROM sandbox_history WHERE project = '{}'"
        return [
            StoredProject.read(
                identity,
                chosen,
                counters,
                rows=server.execute(records.format(project_id), name),
                newest_number=server.execute(newest.format(project_id), name)[0][0],
            )
            for project_id, identity, chosen, counters in projects
        ]

    @contextmanager
    def refuse_commits() -> Iterator[None]:
        server.execute(
            "ALTER TABLE sandbox_record ADD CONSTRAINT refusing CHECK (length(body) = 0) NOT VALID", name
        )
        yield
        server.execute("ALTER TABLE sandbox_record DROP CONSTRAINT refusing", name)

    yield Backend("postgresql", database, stored, refuse_commits)
    database.close()


@pytest.fixture
def services() -> Services:
    """Services without a server."""
    return SERVICES


@pytest.fixture
def registry(backend: Backend, services: Services) -> Registry:
    """An empty registry that stores its projects in the backend."""
    return Registry(services, backend.storages, catalogue(), clock=NOON)


def golden_project(registry: Registry) -> Project:
    """Create a project with every kind of record."""
    created, _ = registry.create({"name": "Sock shop", "seed": 5})
    restore(created, GOLDEN)
    return created
