"""Each check of the attacks fails when what it looks for is there."""

import socket
from pathlib import Path
from random import Random  # noqa: TID251 (seeded)
from threading import Thread
from typing import Any

import pytest
import requests

from tests.attack import SHORT, Failed, Report, Size
from tests.attack.canaries import PLACES, files, leaks, records
from tests.attack.chaos import AMOUNT, _check_books
from tests.attack.probe import READ, Waits, _report
from tests.attack.quotas import Exceeding, judge
from tests.attack.served import Served
from tests.attack.servers import finds_lost_lock
from tests.support.canaries import NUMBER
from tests.support.postgres import needs_postgres

REST = Waits({READ: [2.0] * 100, "create": [3.0] * 100}, {})


class Books:
    """A project with one order, whose books are as they are told to be."""

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
        """The state, or an order."""
        return self._state if path == "/control/state/" else {"amount_details": self._amounts}


def entry(cents: int, taken: str = "captured") -> dict[str, Any]:
    """One entry of an authorization."""
    return {"amount_cents": cents, "taken": taken}


@pytest.mark.parametrize(
    ("books", "problem"),
    [
        (Books([entry(AMOUNT), entry(1, "voided")], {"captured": 1}), "no more is taken"),
        (Books([entry(5)], {"captured": 1}, refunded=6), "no more is refunded"),
        (Books([entry(5)], {"captured": -1}), "no amount is negative"),
        (Books([entry(5)], {}), "no amount is negative"),
        (Books([], {"captured": 1}), "there are authorizations"),
    ],
)
def test_wrong_books_are_found(books: Any, problem: str) -> None:
    """Also books of which nothing can be checked."""
    report = Report("chaos", Size())
    _check_books(books, report)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_right_books_are_right() -> None:
    """Nothing is found."""
    report = Report("chaos", Size())
    _check_books(Books([entry(5)], {"captured": 5}, refunded=5), report)  # type: ignore[arg-type]
    report.end()


@pytest.mark.parametrize(
    ("waits", "problem"),
    [
        (Waits({READ: [2.0] * 100, "create": [3.0] * 99 + [300.0]}, {}), r"longest wait .*\(create\)"),
        (Waits({READ: [2.0] * 95 + [50.0] * 5, "create": [3.0]}, {}), "99th percentile"),
        (Waits(REST.took, {"wait: 503": 1}), "another project is answered"),
    ],
)
def test_a_bystander_who_waits_is_noticed(waits: Waits, problem: str) -> None:
    """In any kind of call, in a part of the reads, or because it is refused."""
    report = Report("shares", Size())
    _report(report, "", REST, waits)
    with pytest.raises(Failed, match=problem):
        report.end()


def test_a_bystander_who_waits_for_nobody_is_fine() -> None:
    """The same figures as at rest."""
    report = Report("shares", Size())
    _report(report, "", REST, REST)
    report.end()


@pytest.mark.parametrize(
    ("done", "problem"),
    [
        (Exceeding(1000, 20, {201: 20}), "what is too much is refused"),
        (Exceeding(1000, 20, {507: 1, 500: 1}), "nothing fails the server"),
        (Exceeding(2_400_000, 20, {507: 1}), "bytes of a project's snapshot"),
        (Exceeding(1000, 40, {507: 1}), "orders of a project"),
    ],
)
def test_projects_that_keep_too_much_are_noticed(done: Exceeding, problem: str) -> None:
    """Orders or bytes, or all that they want."""
    report = Report("quotas", Size())
    judge(report, done)
    with pytest.raises(Failed, match=problem):
        report.end()


class Talkative:
    """A project, or a server, that tells a secret to whoever asks."""

    key = "a-key-of-some-length"

    def expect(self, method: str, path: str) -> Any:
        """Its id."""
        return {"project_id": "an-id"}

    def call(self, method: str, path: str) -> Any:
        """Its records."""
        answer = requests.Response()
        answer._content = NUMBER.encode() if "journal" in path else b"nothing"
        return answer


def test_secrets_that_come_out_are_noticed(tmp_path: Path) -> None:
    """In answers, in records and in files."""
    project: Any = Talkative()
    assert {path for path, _ in records(project)} == {
        "/control/journal/",
        "/control/journal/?summary=1",
        "/dashboard/an-id/journal/",
    }
    (tmp_path / "log").write_text("cvc: 9173 9173 9173")
    (tmp_path / "state").write_text("4539-5787\u202e6362-1486, and a-key-of-some-length")
    (tmp_path / "other").write_text("a-key-of-some-length")
    assert dict(files(tmp_path, project.key)) == {"log": "['code']", "state": "['number']"}
    body = f"{NUMBER} is no amount"
    told = f"HTTP/1.1 400 X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        telling = Thread(target=tell, args=(listening, told))
        telling.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        found = list(leaks(Served(url, 0, []), project, Random(1), 2))
        telling.join()
    assert [name for name, _ in found] == list(PLACES)[:2]


def tell(listening: socket.socket, answer: bytes) -> None:
    """Answer two clients."""
    for _ in range(2):
        opened, _ = listening.accept()
        with opened:
            opened.recv(1 << 16)
            opened.sendall(answer)
            while opened.recv(1 << 16):
                pass


@needs_postgres
def test_servers_without_a_fence_are_noticed() -> None:
    """A server that stood still writes on what another one has taken over meanwhile."""
    assert finds_lost_lock(Report("servers", SHORT))
