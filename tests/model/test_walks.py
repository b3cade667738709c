"""Servers agree with the model on random calls: in process, over HTTP, and with restarts in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.walking import ProjectFactory, in_process, over_http, walk
from tests.support.samples import DAY
from tests.support.servers import make_server


@pytest.fixture(autouse=True)
def printed_seed() -> None:
    """A failure, even of the time limit, shows how to repeat the walks, which differ each day."""
    print(f'Repeat with: DAY={DAY} .venv/bin/pytest -m "prove or not prove" tests/model/test_walks.py')


@contextmanager
def run_on_file(state: Path) -> Iterator[ProjectFactory]:
    """Run a server on an SQLite file; it keeps its address when it restarts."""
    servers = [make_server(state=state, webhooks_only_local=True)]
    servers[0].start()
    port = servers[0].port

    def restart() -> None:
        servers.pop().stop()
        servers.append(make_server(port=port, state=state, webhooks_only_local=True))
        servers[0].start()

    try:
        yield over_http(servers[0].url, restart=restart)
    finally:
        servers.pop().stop()


def test_random_calls_and_events_agree(payment_sandbox_server: PaymentSandboxServer) -> None:
    """The model allows every response and every later read, and a refused call changes nothing."""
    walk(in_process(payment_sandbox_server), examples=4, steps=25, seed=DAY)


def test_random_calls_and_restarts_agree(tmp_path: Path) -> None:
    """A server on an SQLite file agrees with the model over HTTP, also after restarts."""
    with run_on_file(tmp_path / "state.db") as create_project:
        walk(create_project, examples=1, steps=20, seed=DAY)


@pytest.mark.prove
@pytest.mark.parametrize("part", range(5))
def test_many_random_calls_and_events_agree(payment_sandbox_server: PaymentSandboxServer, part: int) -> None:
    """A server agrees with the model on about a thousand random steps in each part."""
    walk(in_process(payment_sandbox_server), examples=30, steps=40, seed=f"{DAY}/{part}")


@pytest.mark.prove
def test_many_random_calls_and_restarts_agree(tmp_path: Path) -> None:
    """A server agrees with the model on about five hundred random steps and restarts."""
    with run_on_file(tmp_path / "state.db") as create_project:
        walk(create_project, examples=16, steps=30, seed=f"{DAY}/restarts")
