"""Storage backends for the tests of behaviour that all backends share."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import Registry, Storages
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.storage.postgresql import Session
from payment_sandbox.storage.rows import StoredProject
from payment_sandbox.storage.snapshot import restore
from payment_sandbox.storage.sqlite import StateFile
from tests.storage.full_disk import full
from tests.support.postgres import Postgres, open_session
from tests.support.projects import catalogue
from tests.support.state_files import stored_projects

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


REFUSE = """
    CREATE FUNCTION payment_sandbox.refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full', MESSAGE = 'the disk is full'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON payment_sandbox.head
        FOR EACH ROW EXECUTE FUNCTION payment_sandbox.refuse()
"""


@contextmanager
def refusing(postgres: Postgres, session: Session) -> Iterator[None]:
    """Refuse every commit of a session, as a full disk does."""
    database = session.place.rpartition("/")[2]
    postgres.execute(REFUSE, database)
    try:
        yield
    finally:
        postgres.execute("DROP FUNCTION payment_sandbox.refuse CASCADE", database)


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
    elif request.param == "postgresql":
        postgres: Postgres = request.getfixturevalue("postgres")
        with open_session(postgres.new_database()) as session:
            stored, refused = partial(stored_projects, session), partial(refusing, postgres, session)
            yield Backend(request.param, session, stored, refused)
    else:
        file = StateFile(tmp_path / "state.db")
        yield Backend(request.param, file, partial(stored_projects, file), partial(full, file))
        file.close()


@pytest.fixture
def durable(backend: Backend) -> Backend:
    """The backend that stores projects."""
    if backend.name == "memory":
        pytest.skip("memory stores nothing")
    return backend


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
