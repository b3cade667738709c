"""The fixtures beside libraries that replace the clock, the file system or the sockets of a test."""

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import pytest_socket
from pytest_recording.network import blocking_context

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.reviews import timeline_text
from tests.support.suites import passed, suite

FAKED = """
import time_machine

@pytest.fixture
def in_2030():
    with time_machine.travel("2030-01-01"):
        yield

def test_a_project_begins_in_real_time(in_2030, payment_sandbox):
    assert payment_sandbox.clock.now.year < 2030
    payment_sandbox.client.reset()
    assert payment_sandbox.clock.now.year < 2030

def test_pages_with_a_fake_file_system(payment_sandbox, fs):
    payment_sandbox.scenario("second-try-works")
    session, base = payment_sandbox.session, payment_sandbox.base_url
    page = session.get(f"http://{place(payment_sandbox)['transactions'][0]['payment_url']}")
    assert (page.status_code, "12.95" in page.text) == (200, True)
    paths = ("openapi.json", "docs/", "control/fidelity/", "dashboard/assets/dashboard.css")
    for path in (*paths, f"dashboard/{payment_sandbox.project_id}/orders/"):
        answer = session.get(f"{base}/{path}", headers={"Accept": "text/html"})
        assert answer.status_code == 200, answer.text
"""


def test_a_fake_clock_and_a_fake_file_system_have_no_influence(tmp_path: Path) -> None:
    """Pages, documentation and scenarios work while pyfakefs hides all files; time-machine moves no project."""
    passed(suite(tmp_path, FAKED, "-p", "pyfakefs.pytest_plugin"), 2)


@contextmanager
def block_by_socket_plugin() -> Iterator[None]:
    """Block the network as pytest-socket does."""
    pytest_socket.disable_socket()
    try:
        yield
    finally:
        pytest_socket.enable_socket()


@pytest.mark.filterwarnings("ignore:A test tried to use socket")
@pytest.mark.parametrize(
    ("block", "name"),
    [(block_by_socket_plugin, "pytest-socket"), (blocking_context, "pytest-recording (--block-network)")],
)
def test_a_blocked_call_names_the_library_that_blocked_it(
    payment_sandbox: PaymentSandbox, block: Callable[[], AbstractContextManager[None]], name: str
) -> None:
    """The report of a call over the network says who blocked it, and which session needs no sockets."""
    with block(), pytest.raises(RuntimeError) as raised, socket.socket() as connection:
        connection.connect(("127.0.0.1", 9))
    report = timeline_text(payment_sandbox, raised.value)
    assert report.startswith(f"{name} blocked a call over the network; payment_sandbox.session, ")
    assert "blocked a call" not in timeline_text(payment_sandbox, RuntimeError("of the shop"))
