"""Random calls and events agree with the model: in process, over HTTP, and with restarts in between."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.walking import Begin, in_process, over_http, walk
from tests.support.servers import make_server


@contextmanager
def from_a_file(state: Path) -> Iterator[Begin]:
    """A server on an SQLite file, at an address that stays the same when it restarts."""
    running = [make_server(state=state, webhooks_only_local=True)]
    running[0].start()
    port = running[0].port

    def restart() -> None:
        running.pop().stop()
        running.append(make_server(port=port, state=state, webhooks_only_local=True))
        running[0].start()

    try:
        yield over_http(running[0].url, restart=restart)
    finally:
        running.pop().stop()


def test_random_calls_and_events_agree(payment_sandbox_server: PaymentSandboxServer) -> None:
    """Every answer is allowed, and so is all that is read afterwards."""
    walk(in_process(payment_sandbox_server), examples=12, steps=25)


def test_random_calls_and_restarts_agree(tmp_path: Path) -> None:
    """The same over HTTP, from an SQLite file."""
    with from_a_file(tmp_path / "state.db") as begin:
        walk(begin, examples=4, steps=20)


@pytest.mark.prove
def test_many_random_calls_and_events_agree(payment_sandbox_server: PaymentSandboxServer) -> None:
    """Some four thousand steps."""
    walk(in_process(payment_sandbox_server), examples=100, steps=40)


@pytest.mark.prove
def test_many_random_calls_and_restarts_agree(tmp_path: Path) -> None:
    """Some thousand steps and restarts."""
    with from_a_file(tmp_path / "state.db") as begin:
        walk(begin, examples=40, steps=30)
