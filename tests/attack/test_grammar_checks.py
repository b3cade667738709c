"""Each check of the grammar fuzzer fails when what it looks for is there."""

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
from tests.attack.answers import Answer, Asked, Reader
from tests.attack.bystander import Calls, Made
from tests.attack.composed import composed
from tests.attack.fuzzing import (
    MEMORY_MIB_MAX,
    PEAK_MIB_MAX,
    Memory,
    Plan,
    Window,
    carry_out,
    key_problems,
    limit_memory,
    order_problems,
    peak_problems,
    problems_of,
    report_waits,
    twin_problems,
)
from tests.attack.grammar import (
    REQUESTS,
    Production,
    Target,
    asked,
    expectations,
    right,
    says,
    targets,
    wrong,
)
from tests.attack.records import records, secure_records, within_tls
from tests.attack.sequences import SEQUENCES, authorizing_trailers, half_closes
from tests.attack.served import served
from tests.attack.talking import Case, Client, Ending, Sent, Talk

KEYED = Target("127.0.0.1:1", SHORT, "a-key")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CREATED = OK.replace(b"200 OK", b"201 Created")
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
SHAPE = b'{"error": {"status": %d, "type": "X", "value": "y", "violations": []}}'
ONE = (asked({200}),)


def error(status: int, body: bytes = b"") -> bytes:
    """An error as this server answers it, or with another body."""
    body = body or SHAPE % status
    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def read(raw: bytes, *asked: Asked, is_reset: bool = False) -> Talk:
    """What a client reads if the server sends this and ends."""
    reader = Reader(asked or ONE)
    step = 1 + len(raw) // 1000  # mostly in the smallest pieces
    for at in range(0, len(raw), step):
        reader.feed(raw[at : at + step])
    reader.end(is_reset=is_reset)
    return Talk(reader.answers, reader.interims, reader.problems, is_reset)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"HTTP/2 200 OK\r\n\r\n", "no status line"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "no status line"),
        (b"<html>\r\n\r\n", "no status line"),
        (b"HTTP/1.1 200 OK\nA: b\r\n\r\n", "no status line"),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "no header"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "no header"),
        (b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "no header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "twice"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", "no number"),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 2\r\n\r\n"), "framed in two forms"),
        (CHUNKED.replace(b"chunked", b"gzip"), "framed in two forms, or in one"),
        (CHUNKED + b"x\r\n", "a chunk without its size"),
        (CHUNKED + b"1\r\nabc\r\n", "a chunk of another length"),
        (CHUNKED + b"0\r\nA: b\r\n\r\n", "trailers that nobody asked for"),
        (CHUNKED + b"2\r\n{}\r\n", "ended within a response"),
        (OK[:-1], "ended within a response"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000, "a head does not end"),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "an interim answer other than 100"),
        (OK + OK, "2 answers to 1 requests"),
        (OK + b"x", "ended within a response"),
        (CREATED, "answer 0 is 201, but should be one of"),
        (b"", "0 answers to 1 requests, and the end without a word"),
        (CONTINUE + OK, "1 times 100 Continue; at least 0, at most 0"),
        (CONTINUE, "100 Continue before"),
        (error(400, b"oops"), "another shape than errors"),
        (error(400, SHAPE % 401), "another shape than errors"),
        (error(400).replace(b"application/json", b"text/html"), "not in JSON"),
    ],
)
def test_a_wrong_answer_is_noticed(raw: bytes, problem: str) -> None:
    """Whatever is wrong with it, or with their number."""
    case = Case("a read", says(b""), ONE)
    assert problem in "; ".join(problems_of(case, read(raw)))


@pytest.mark.parametrize(
    "raw", [OK, CHUNKED + b"1\r\n{\r\n1;a=b\r\n}\r\n0\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n{}"]
)
def test_a_right_answer_is_right(raw: bytes) -> None:
    """In each of the frames that there are."""
    case = Case("a read", says(b""), ONE)
    talk = read(raw)
    assert list(problems_of(case, talk)) == []
    assert talk.answers[0].body == b"{}"


def test_other_checks_of_answers() -> None:
    """A missing interim answer, chunks for HTTP/1.0, a reset, and answers that need not come."""
    expecting = Case("Expect", says(b""), (asked({200}, interims=(1, 1)),))
    assert "got 0 times 100 Continue" in "; ".join(problems_of(expecting, read(OK, *expecting.asked)))
    assert not list(problems_of(expecting, read(CONTINUE + OK, *expecting.asked)))
    assert "framed" in read(CHUNKED + b"0\r\n\r\n", asked({200}, is_old=True)).problems[0]
    cut = read(OK[:-1], is_reset=True)
    assert list(problems_of(Case("a read", says(b""), ONE), cut)) == [
        "0 answers to 1 requests, and the end with a reset"
    ]
    assert not list(problems_of(Case("a read", says(b""), ONE, is_certain=False), cut))
    assert read(OK[:-2], asked({200}, is_head=True)).answers[0] == Answer(200, {b"content-length": b"2"}, b"")


RECORDED: dict[str, tuple[Production, bytes, str]] = {
    "Expect with HTTP/1.0": (expectations, CONTINUE + CREATED, "1 times 100 Continue"),
    "Expect, and a body of 1048577": (expectations, CONTINUE, "100 Continue before"),
    "absolute, a creation": (targets, error(404), "answer 0 is 404"),
    "the key in a trailer": (authorizing_trailers, CREATED, "answer 0 is 201"),
    "20 creations": (half_closes, CREATED * 5, "5 answers to 20 requests"),
    "b'FOO' cut at 1": (REQUESTS["cut"], error(404), "answer 0 is 404"),
    "1100 offers": (REQUESTS["offers"], OK * 983 + error(400), "answer 983 is 400"),
    "chunked, and length 0": (REQUESTS["framings"], CREATED + OK, "2 answers to 1 requests"),
    "nothing after a close": (SEQUENCES["pipelines"], CREATED * 2, "2 answers to 1 requests"),
    "two Hosts": (REQUESTS["headers"], OK, "answer 0 is 200"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_an_earlier_server_answered_is_noticed(name: str) -> None:
    """By the production that is for it."""
    production, raw, problem = RECORDED[name]
    case = next(case for case in production(KEYED) if case.name == name)
    assert problem in "; ".join(problems_of(case, read(raw, *case.asked)))


def test_orders_that_nobody_knows_of_are_noticed() -> None:
    """Made without an answer, or although a request was cut; a client that breaks off may not know of its own."""
    case = right("a creation", b"", {201})
    assert list(order_problems(case, 0, 1)) == ["1 orders were made, and the client knows of 0"]
    assert list(order_problems(case, 1, 1)) == []
    assert list(order_problems(case, 1, 0)) == ["0 orders were made, and the client knows of 1"]
    assert list(order_problems(case, 0, 2, late=1)) == ["2 orders were made, and the client knows of 0"]
    assert list(order_problems(case, 1, 2, late=1)) == []
    broken_off = case._replace(ending=Ending.RESETS)
    assert list(order_problems(broken_off, 0, 1)) == []
    assert list(order_problems(broken_off, 0, 2)) == ["2 orders were made, of at most 1"]
    cut = wrong("a part of a creation", b"")._replace(ending=Ending.RESETS)
    assert list(order_problems(cut, 0, 1)) == ["1 orders were made, of at most 0"]


def test_another_answer_to_the_same_is_noticed() -> None:
    """In two segments, or with an absolute target; also if only one of them is answered."""
    once = read(error(405), asked({400, 405}))
    assert list(twin_problems(once, read(error(400), asked({400, 405})))) == [
        "it gets [405], and the same in another form [400]"
    ]
    assert list(twin_problems(once, read(b""))) == ["it gets [405], and the same in another form []"]
    assert not list(twin_problems(once, once))
    assert not list(twin_problems(once, None))
    cases = [*REQUESTS["cut"](KEYED), *targets(KEYED)]
    assert {"b'FOO' cut at 1", "absolute, a creation at another host"} <= {
        case.name for case in cases if case.twin
    }


def failed(report: Report) -> str:
    """What a report complains of."""
    with pytest.raises(Failed) as complaint:
        report.end()
    return str(complaint.value)


def test_memory_that_is_taken_is_noticed() -> None:
    """At its peak, which begins anew for each case, and afterwards."""
    memory = Memory(os.getpid())
    memory.peak_mib()
    before = memory.now_mib()
    taken = bytearray(b"x") * ((PEAK_MIB_MAX + 50) << 20)
    del taken
    assert list(peak_problems(memory.peak_mib() - before))
    assert not list(peak_problems(memory.peak_mib() - before))
    report = Report("grammar", Size())
    falling = count(200.0, -50.0)
    limit_memory(report, "chunks", lambda: next(falling), 50.0)
    report.end()
    limit_memory(report, "chunks", lambda: 51.0 + MEMORY_MIB_MAX, 50.0, seconds=0.05)
    assert "chunks: memory afterwards" in failed(report)


def calls(*, during_ms: float, longest_ms: float = 2.0, problem: str | None = None) -> Calls:
    """Two hundred calls alone, as many during the cases, and one more."""
    calls = Calls()
    for number in range(200):
        kind = ("read", "create")[number % 2]
        calls.made.append(Made(number / 200, kind, 2.0, None))
        calls.made.append(Made(1 + number / 200, kind, during_ms, None))
    calls.made.append(Made(1.5, "read", longest_ms, problem))
    return calls


def waited(calls: Calls) -> Report:
    """A report of a run with these calls."""
    report = Report("grammar", Size())
    windows = [Window("a short case", 1.0, 1.1), Window("a long case", 1.1, 1.99)]
    report_waits(report, "trailers", calls, Window("alone", 0.0, 0.9), windows)
    return report


def test_a_bystander_who_waits_is_noticed() -> None:
    """Once for long, with the case; often for a while; or because it is refused."""
    waited(calls(during_ms=3.0)).end()
    longest = failed(waited(calls(during_ms=2.0, longest_ms=300.0)))
    assert "trailers: a long case: another project waits at most 250 ms: 300, and 1 times too long" in longest
    assert "a short case" not in longest
    both = failed(waited(calls(during_ms=12.0)))
    assert "read: 99th percentile" in both
    assert "create: 99th percentile" in both
    assert "another project is answered: {'503': 1}" in failed(waited(calls(during_ms=2.0, problem="503")))


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[tuple[str, int]]:
    """A server that has one client, and treats it in this manner."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        opened, _ = listening.accept()
        with opened:
            answer(opened)

    thread = Thread(target=serve)
    thread.start()
    with closing(listening):
        yield listening.getsockname()
        thread.join()


def talked(answer: Callable[[socket.socket], object], **fields: Any) -> list[str]:
    """What a client of such a server complains of, after one read."""
    case = Case("a read", says(b"GET / HTTP/1.1\r\n\r\n"), ONE, answer_seconds=0.2)._replace(**fields)
    with answering(answer) as address:
        return list(problems_of(case, Client(address, case, closed_seconds=0.2).talk()))


def sends(raw: bytes, *, after_end: bytes = b"", stays: bool = False) -> Callable[[socket.socket], None]:
    """Reads a request, sends this, and more once the client has ended."""

    def answer(opened: socket.socket) -> None:
        opened.recv(1000)
        opened.sendall(raw)
        while opened.recv(1000):
            pass
        opened.sendall(after_end)
        if stays:
            opened.settimeout(5)
            opened.recv(1)  # the client goes in the end

    return answer


def test_a_connection_is_read_to_its_end() -> None:
    """Until the server closes, too; what comes in between is no answer."""
    assert talked(sends(OK)) == []
    assert talked(sends(OK), ending=Ending.HALF_CLOSES) == []
    assert talked(sends(OK, after_end=OK)) == ["2 answers to 1 requests"]
    assert talked(sends(b"")) == ["0 answers to 1 requests, and the end without a word"]
    assert talked(lambda opened: opened.recv(1000), ending=Ending.HALF_CLOSES) == [
        "0 answers to 1 requests, and the end without a word"
    ]


def test_answers_are_read_although_the_connection_was_broken_then() -> None:
    """Before the client has closed its side, and even before it looked."""
    is_over = Event()

    def answer(opened: socket.socket) -> None:
        opened.recv(1)
        opened.sendall(OK)
        opened.close()  # with unread bytes: the connection is reset
        is_over.set()

    def sent() -> Sent:
        yield b"GET / HTTP/1.1\r\n\r\n"
        is_over.wait(5)

    assert not talked(answer, sent=sent, ending=Ending.HALF_CLOSES)


def test_a_connection_that_stays_open_is_noticed() -> None:
    """Although its client has closed its side."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts nothing
        case = Case("a read", says(b"GET"), ONE, is_certain=False, answer_seconds=0.1)
        talk = Client(silent.getsockname(), case, closed_seconds=0.1).talk()
    assert talk.problems == ["the connection stays open although its client has ended"]


def test_a_key_that_comes_out_is_noticed() -> None:
    """In an answer, or in the log; plain, or as clients send it."""
    body = (SHAPE % 400).replace(b'"y"', b'"%s"' % b64encode(b"a-key:"))
    assert list(key_problems(read(error(400, body)), "a-key")) == ["an answer shows the key"]
    assert not list(key_problems(read(error(400)), "a-key"))
    assert list(key_problems(read(error(400, b"a-key")), "a-key"))
    logs = pytest.raises(AssertionError, match="the server has logged a key")
    with logs, served("--quiet", program=("sh", "-c", 'echo a-key >&2; exec "$@"', "sh")) as server:
        server.keys.append("a-key")


LOGS = ("sh", "-c", 'echo "Traceback (most recent call last):" >&2; exec "$@"', "sh")


def test_a_traceback_in_the_log_is_noticed() -> None:
    """And a server that is not there."""
    report = Report("grammar", SHORT)
    few = {
        "a read": lambda target: iter([right("a read", b"GET /health/ HTTP/1.0\r\n\r\n", {200}, is_old=True)])
    }
    carry_out(report, Plan("", few))
    report.end()
    carry_out(report, Plan("", few, program=LOGS))
    assert "the server has logged a traceback" in failed(report)
    ended = Report("grammar", SHORT)
    carry_out(ended, Plan("", few, program=("false",)))
    assert "the server has ended" in failed(ended)


def test_a_seed_replays_a_composition() -> None:
    """Byte by byte; another seed composes another one."""

    def sent(seed: str) -> list[object]:
        return list(composed(KEYED, seed).sent())

    assert sent("7:1") == sent("7:1")
    assert len({str(sent(f"7:{number}")) for number in range(20)}) > 10


def test_every_production_has_names_and_ends() -> None:
    """Names say which case it was; each case asks for something, or is no HTTP."""
    productions = {**REQUESTS, **SEQUENCES, "records": records, "secure": secure_records, "tls": within_tls}
    for name, production in productions.items():
        cases = list(production(KEYED))
        assert cases, name
        assert all(case.name and (case.asked or not case.is_http) for case in cases)
