"""Each check of the attacks detects its problem."""

import socket
from pathlib import Path
from random import Random  # noqa: TID251 (seeded)
from threading import Thread
from typing import Any

import pytest
import requests

from tests.attack import Failed, Report, Size
from tests.attack.canaries import PLACES, files, leaks, records
from tests.attack.chaos import AMOUNT, _check_books
from tests.attack.probe import READ, Waits, _report
from tests.attack.server_process import ServerProcess
from tests.support.canaries import NUMBER

AT_REST = Waits({READ: [2.0] * 100, "create": [3.0] * 100}, {})


class ProjectBooks:
    """A project with one order and the given entries and amounts."""

    def __init__(self, entries: list[dict[str, Any]], amounts: dict[str, int], refunded: int = 0) -> None:
        refund = {"id": "b", "refunds": [], "transactions": [], "amount_cents": refunded}
        order = {
            "id": "a",
            "refunds": [{"refund_id": "b"}],
            "transactions": [{"authorization": {"entries": entries} if entries else None}],
            "refund_of_order_id": None,
        }
        self._state = {"orders": [order, {**refund, "refund_of_order_id": "a"}]}
        self._amounts = amounts

    def expect(self, method: str, path: str) -> Any:
        """Return the state, or the amounts of an order."""
        return self._state if path == "/control/state/" else {"amount_details": self._amounts}


def entry(cents: int, taken: str = "captured") -> dict[str, Any]:
    """Return one entry of an authorization."""
    return {"amount_cents": cents, "taken": taken}


@pytest.mark.parametrize(
    ("books", "problem"),
    [
        (ProjectBooks([entry(AMOUNT), entry(1, "voided")], {"captured": 1}), "no more is taken"),
        (ProjectBooks([entry(5)], {"captured": 1}, refunded=6), "no more is refunded"),
        (ProjectBooks([entry(5)], {"captured": -1}), "no amount is negative"),
        (ProjectBooks([entry(5)], {}), "no amount is negative"),
        (ProjectBooks([], {"captured": 1}), "there are authorizations"),
    ],
)
def test_inconsistent_books_are_reported(books: Any, problem: str) -> None:
    """Inconsistent amounts fail the attack, and so does a project without authorizations."""
    report = Report("chaos", Size())
    _check_books(books, report)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_consistent_books_pass() -> None:
    """Consistent amounts pass the check."""
    report = Report("chaos", Size())
    _check_books(ProjectBooks([entry(5)], {"captured": 5}, refunded=5), report)  # type: ignore[arg-type]
    report.end()


@pytest.mark.parametrize(
    ("waits", "problem"),
    [
        (Waits({READ: [2.0] * 100, "create": [3.0] * 99 + [300.0]}, {}), r"longest wait .*\(create\)"),
        (Waits({READ: [2.0] * 95 + [50.0] * 5, "create": [3.0]}, {}), "99th percentile"),
        (Waits(AT_REST.durations_ms, {"wait: 503": 1}), "another project is answered"),
    ],
)
def test_a_bystander_who_waits_is_noticed(waits: Waits, problem: str) -> None:
    """A long call, slow reads, or a failed call of another project fail the attack."""
    report = Report("shares", Size())
    _report(report, "", AT_REST, waits)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_a_bystander_without_delays_passes() -> None:
    """The same durations as at rest pass the check."""
    report = Report("shares", Size())
    _report(report, "", AT_REST, AT_REST)
    report.end()


class LeakyProject:
    """A project whose journal contains a secret."""

    key = "a-key-of-some-length"

    def expect(self, method: str, path: str) -> Any:
        """Return the project's ID."""
        return {"project_id": "an-id"}

    def call(self, method: str, path: str) -> Any:
        """Return a record, with a secret in the journal."""
        answer = requests.Response()
        answer._content = NUMBER.encode() if "journal" in path or "requests" in path else b"nothing"
        return answer


def test_exposed_secrets_are_reported(tmp_path: Path) -> None:
    """Secrets in answers, records and files are detected."""
    project: Any = LeakyProject()
    assert {path for path, _ in records(project)} == {
        "/control/journal/",
        "/control/journal/?summary=1",
        "/dashboard/an-id/requests/",
    }
    (tmp_path / "log").write_text("cvc: 9173 9173 9173")
    (tmp_path / "state").write_text("4539-5787\u202e6362-1486, and a-key-of-some-length")
    (tmp_path / "other").write_text("a-key-of-some-length")
    assert dict(files(tmp_path, project.key)) == {"log": "['code']", "state": "['number']"}
    body = f"{NUMBER} is no amount"
    raw_answer = f"HTTP/1.1 400 X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=answer_two_clients, args=(listener, raw_answer))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        found_leaks = list(leaks(ServerProcess(url, 0, []), project, Random(1), 2))
        thread.join()
    assert [name for name, _ in found_leaks] == list(PLACES)[:2]


def answer_two_clients(listener: socket.socket, answer: bytes) -> None:
    """Send the same answer to two clients."""
    for _ in range(2):
        connection, _ = listener.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(answer)
