"""Each check of the grammar fuzzer detects its problem."""

import os
import socket
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from threading import Event, Thread
from typing import Any

import pytest

from tests.attack import SHORT, Failed, Report, Size
from tests.attack.answers import ExpectedResponse, Reader
from tests.attack.client import Case, Client, Ending, Pieces, Transcript
from tests.attack.fuzzing import (
    MEMORY_MIB_MAX,
    PEAK_MIB_MAX,
    Memory,
    Plan,
    key_problems,
    limit_memory,
    order_problems,
    peak_problems,
    problems_of,
    run_plan,
)
from tests.attack.grammar import PRODUCTIONS, Target, must_answer, must_refuse, response, sends
from tests.attack.server_process import run_server

KEYED = Target("127.0.0.1:1", SHORT, "a-key")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CREATED = OK.replace(b"200 OK", b"201 Created")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ERROR_BODY = b'{"error": {"status": %d, "type": "X", "value": "y", "violations": []}}'
EXPECTED_OK = (response({200}),)


def error(status: int, body: bytes = b"") -> bytes:
    """Return an error answer of this server, or one with the given body."""
    body = body or ERROR_BODY % status
    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def read(raw: bytes, *expected: ExpectedResponse, is_reset: bool = False) -> Transcript:
    """Return the transcript of a client whose server sends these bytes and closes."""
    reader = Reader(expected or EXPECTED_OK)
    step = 1 + len(raw) // 1000  # mostly single bytes
    for at in range(0, len(raw), step):
        reader.feed(raw[at : at + step])
    reader.end(is_reset=is_reset)
    return Transcript(reader.answers, reader.interims, reader.problems, is_reset)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"<html>\r\n\r\n", "a malformed response"),
        (b"HTTP/1.1 200 OK\r\n\r\n{}", "a malformed response"),
        (OK[:-1], "ended within a response"),
        (CHUNKED + b"2\r\n{}\r\n", "ended within a response"),
        (OK + OK, "2 answers to 1 requests"),
        (OK + b"x", "ended within a response"),
        (CREATED, "answer 0 is 201, but should be one of"),
        (b"", "0 answers to 1 requests, then a close without notice"),
        (CONTINUE + OK, "1 times 100 Continue; at least 0, at most 0"),
        (CONTINUE, "100 Continue before"),
        (error(400, b"oops"), "not have the shape of an error"),
        (error(400, ERROR_BODY % 401), "not have the shape of an error"),
        (error(400).replace(b"application/json", b"text/html"), "is not JSON"),
    ],
)
def test_a_wrong_answer_is_noticed(raw: bytes, problem: str) -> None:
    """A malformed answer, or a wrong number of answers, is reported."""
    case = Case("a read", sends(b""), EXPECTED_OK)
    assert problem in "; ".join(problems_of(case, read(raw)))


@pytest.mark.parametrize("raw", [OK, CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"])
def test_a_valid_answer_passes(raw: bytes) -> None:
    """A valid answer in each framing passes all checks."""
    case = Case("a read", sends(b""), EXPECTED_OK)
    transcript = read(raw)
    assert list(problems_of(case, transcript)) == []
    assert transcript.answers[0].body == b"{}"


def test_other_checks_of_answers() -> None:
    """Interim answers, resets and optional answers are checked."""
    expecting = Case("Expect", sends(b""), (response({200}, interims=(1, 1)),))
    assert "got 0 times 100 Continue" in "; ".join(problems_of(expecting, read(OK, *expecting.expected)))
    assert not list(problems_of(expecting, read(CONTINUE + OK, *expecting.expected)))
    cut = read(OK[:-1], is_reset=True)
    assert list(problems_of(Case("a read", sends(b""), EXPECTED_OK), cut)) == [
        "0 answers to 1 requests, then a reset"
    ]
    assert not list(problems_of(Case("a read", sends(b""), EXPECTED_OK, is_certain=False), cut))


RECORDED: dict[str, tuple[str, bytes, str]] = {
    "Expect, and a body that is too long": ("pipelines", CONTINUE, "100 Continue before"),
    "20 creations": ("pipelines", CREATED * 5, "5 answers to 20 requests"),
    "20 creations with offers": ("pipelines", CREATED * 13 + error(400), "answer 13 is 400"),
    "nothing after a close": ("pipelines", CREATED * 2, "2 answers to 1 requests"),
    "two Hosts": ("heads", OK, "answer 0 is 200"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_wrong_answers_of_earlier_servers_are_reported(name: str) -> None:
    """Each production detects a wrong answer of an earlier server."""
    production, raw, problem = RECORDED[name]
    case = next(case for case in PRODUCTIONS[production](KEYED) if case.name == name)
    assert problem in "; ".join(problems_of(case, read(raw, *case.expected)))


def test_unacknowledged_orders_are_reported() -> None:
    """Unacknowledged orders are reported, unless the client has reset its connection."""
    case = must_answer("a creation", b"", {201})
    assert list(order_problems(case, 0, 1)) == ["1 orders were created, but 0 were acknowledged"]
    assert list(order_problems(case, 1, 1)) == []
    assert list(order_problems(case, 1, 0)) == ["0 orders were created, but 1 were acknowledged"]
    assert list(order_problems(case, 0, 2, late=1)) == ["2 orders were created, but 0 were acknowledged"]
    assert list(order_problems(case, 1, 2, late=1)) == []
    broken_off = case._replace(ending=Ending.RESETS)
    assert list(order_problems(broken_off, 0, 1)) == []
    assert list(order_problems(broken_off, 0, 2)) == ["2 orders were created, but at most 1 were expected"]
    cut = must_refuse("a part of a creation", b"")._replace(ending=Ending.RESETS)
    assert list(order_problems(cut, 0, 1)) == ["1 orders were created, but at most 0 were expected"]


def failure_message(report: Report) -> str:
    """Return the problems of a report."""
    with pytest.raises(Failed) as raised:
        report.end()
    return str(raised.value)


def test_excessive_memory_is_reported() -> None:
    """Memory above the limits is reported, at the peak of a case and afterwards."""
    memory = Memory(os.getpid())
    memory.peak_mib()
    before = memory.now_mib()
    block = bytearray(b"x") * ((PEAK_MIB_MAX + 50) << 20)
    del block
    assert list(peak_problems(memory.peak_mib() - before))
    assert not list(peak_problems(memory.peak_mib() - before))
    report = Report("grammar", Size())
    readings = count(200.0, -50.0)
    limit_memory(report, "chunks", lambda: next(readings), 50.0)
    report.end()
    limit_memory(report, "chunks", lambda: 51.0 + MEMORY_MIB_MAX, 50.0, seconds=0.05)
    assert "chunks: memory afterwards" in failure_message(report)


@contextmanager
def run_server_with(answer: Callable[[socket.socket], object]) -> Iterator[tuple[str, int]]:
    """Run a server that answers one client in the given manner."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            answer(connection)

    thread = Thread(target=serve)
    thread.start()
    with closing(listening):
        yield listening.getsockname()
        thread.join()


def read_problems(answer: Callable[[socket.socket], object], **fields: Any) -> list[str]:
    """Return the problems of one read from such a server."""
    case = Case("a read", sends(b"GET / HTTP/1.1\r\n\r\n"), EXPECTED_OK, answer_seconds=0.2)._replace(
        **fields
    )
    with run_server_with(answer) as address:
        return list(problems_of(case, Client(address, case, closed_seconds=0.2).run()))


def make_handler(
    raw: bytes, *, after_end: bytes = b"", stays: bool = False
) -> Callable[[socket.socket], None]:
    """Return a handler that reads a request, sends bytes, and sends more once the client has closed."""

    def answer(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(raw)
        while connection.recv(1000):
            pass
        connection.sendall(after_end)
        if stays:
            connection.settimeout(5)
            connection.recv(1)  # until the client closes

    return answer


def test_a_connection_is_read_to_its_end() -> None:
    """A client reads until the server closes, and reports surplus and missing answers."""
    assert read_problems(make_handler(OK)) == []
    assert read_problems(make_handler(OK, after_end=OK)) == ["2 answers to 1 requests"]
    assert read_problems(make_handler(b"")) == ["0 answers to 1 requests, then a close without notice"]
    assert read_problems(lambda connection: connection.recv(1000)) == [
        "0 answers to 1 requests, then a close without notice"
    ]


def test_answers_before_a_reset_are_read() -> None:
    """Answers before a reset are read, even if the reset precedes the client's first read."""
    is_over = Event()

    def answer(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(OK)
        connection.close()  # with unread bytes: the connection is reset
        is_over.set()

    def pieces() -> Pieces:
        yield b"GET / HTTP/1.1\r\n\r\n"
        is_over.wait(5)

    assert not read_problems(answer, pieces=pieces)


def test_a_connection_that_stays_open_is_noticed() -> None:
    """A connection that the server keeps open after its client has closed is reported."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts nothing
        case = Case("a read", sends(b"GET"), EXPECTED_OK, is_certain=False, answer_seconds=0.1)
        transcript = Client(silent.getsockname(), case, closed_seconds=0.1).run()
    assert transcript.problems == ["the connection stays open although its client has ended"]


def test_an_exposed_key_is_reported() -> None:
    """A key in an answer or in the log is reported, plain or encoded in Base64."""
    body = (ERROR_BODY % 400).replace(b'"y"', b'"%s"' % b64encode(b"a-key:"))
    assert list(key_problems(read(error(400, body)), "a-key")) == ["an answer contains the key"]
    assert not list(key_problems(read(error(400)), "a-key"))
    assert list(key_problems(read(error(400, b"a-key")), "a-key"))
    logs = pytest.raises(AssertionError, match="the server has logged a key")
    with logs, run_server("--quiet", program=("sh", "-c", 'echo a-key >&2; exec "$@"', "sh")) as server:
        server.keys.append("a-key")


LOGS = ("sh", "-c", 'echo "Traceback (most recent call last):" >&2; exec "$@"', "sh")


def test_a_traceback_in_the_log_is_noticed() -> None:
    """A traceback in the log is reported, and a server that does not start."""
    report = Report("grammar", SHORT)
    productions = {
        "a read": lambda target: iter(
            [must_answer("a read", b"GET /health/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", {200})]
        )
    }
    run_plan(report, Plan("", productions))
    report.end()
    run_plan(report, Plan("", productions, program=LOGS))
    assert "the server has logged a traceback" in failure_message(report)
    report_of_ended = Report("grammar", SHORT)
    run_plan(report_of_ended, Plan("", productions, program=("false",)))
    assert "the server has ended" in failure_message(report_of_ended)


def test_every_case_has_a_name() -> None:
    """Each case has a name, and expects an answer."""
    for name, production in PRODUCTIONS.items():
        cases = list(production(KEYED))
        assert cases, name
        assert all(case.name and case.expected for case in cases)
