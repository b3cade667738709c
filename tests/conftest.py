"""Fixtures: one server per test session, and one project per test."""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.locks import check_order
from payment_sandbox.serving.server import Server
from tests.support.driver import Sandbox
from tests.support.servers import make_server
from tests.support.shop import Shop
from tests.support.state_files import check_state

if TYPE_CHECKING:
    from tests.support.postgres import Postgres

check_order(on=True)
hypothesis.settings.register_profile("tests", deadline=None)  # a busy machine fails no test
hypothesis.settings.load_profile("tests")

# many tests start Python, and compiling takes most of its start time
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "pycache")
sys.dont_write_bytecode = False  # half of the time of collecting went into rewriting the same assertions

for name in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"):
    os.environ.pop(name, None)  # a make that a test starts is no part of the make that runs the tests

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("attack", "browser", "containers")
"""Folders whose tests are all marked ``prove``."""
ROWS_MAX = 12
"""The rows of a table on a state file; there are as many payment methods."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not import modules of which no test is selected: ``make prove`` needs one in five."""
    is_slow = any(collection_path.is_relative_to(TESTS / folder) for folder in SLOW_FOLDERS)
    if config.option.markexpr == "prove" and collection_path.match("test_*.py") and not is_slow:
        return "prove" not in collection_path.read_text() or None
    return (is_slow and config.option.markexpr.startswith("not prove")) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests ``prove`` before pytest selects tests by their marks."""
    for item in items:
        if item.path.is_relative_to(TESTS) and item.path.relative_to(TESTS).parts[0] in SLOW_FOLDERS:
            item.add_marker(pytest.mark.prove)
    if "SANDBOX_TEST_STATE" in os.environ:
        chosen = select_tests_of_state(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let garbage collections skip the collected tests and what they import, of which nothing is garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def select_tests_of_state(items: list[pytest.Item]) -> list[pytest.Item]:
    """Select the tests of the server with the state, one of every ``SANDBOX_TEST_SAMPLE``.

    A table has its first rows only: long tables have refusals, which store nothing.
    """
    rows: Counter[str] = Counter()
    chosen = []
    for item in items:
        name = item.nodeid.partition("[")[0]
        if "server" in getattr(item, "fixturenames", ()) and rows[name] < ROWS_MAX:
            rows[name] += 1
            chosen.append(item)
    return chosen[:: int(os.environ.get("SANDBOX_TEST_SAMPLE", "1"))]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A sandbox on a free port, with the state in ``SANDBOX_TEST_STATE``, if any."""
    state = os.environ.get("SANDBOX_TEST_STATE")
    with make_server(seed=1, state=state) as sandbox_server:
        yield sandbox_server
        if sandbox_server.state is not None:
            assert check_state(sandbox_server.state, sandbox_server.registry) > 1


@pytest.fixture(scope="session")
def postgres() -> Iterator["Postgres"]:
    """A PostgreSQL server of this worker; without PostgreSQL, the test is skipped."""
    from tests.support.postgres import running

    with running() as database_server:
        yield database_server


@pytest.fixture(scope="session")
def http() -> Iterator[requests.Session]:
    """A session whose connections stay open between tests."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all workers of this test run."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@pytest.fixture
def project(server: Server, http: requests.Session) -> Callable[..., Sandbox]:
    """A factory of projects; it takes their settings."""
    return lambda **settings: Sandbox(server, http, **settings)


@pytest.fixture
def sandbox(project: Callable[..., Sandbox]) -> Sandbox:
    """A fresh project in test mode, with a frozen clock."""
    return project()


@pytest.fixture
def client(sandbox: Sandbox) -> Iterator[SandboxClient]:
    """The client of a fresh project without a webhook URL."""
    sandbox_client = SandboxClient(sandbox.url, sandbox.key)
    yield sandbox_client
    sandbox_client.close()


@pytest.fixture
def live(project: Callable[..., Sandbox]) -> Sandbox:
    """A fresh project in live mode, with a frozen clock."""
    return project(mode="live")


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A merchant's shop that receives webhooks."""
    merchant_shop = Shop()
    yield merchant_shop
    merchant_shop.close()


@pytest.fixture
def watched(project: Callable[..., Any], shop: Shop) -> Sandbox:
    """A project whose webhooks go to ``shop``."""
    sandbox: Sandbox = project(webhook_url=shop.url)
    return sandbox
