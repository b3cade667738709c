"""Servers that answer anything: verify ends in one sentence, whatever comes, and takes what it made back."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from threading import Event, Thread
from typing import Any

import pytest
import requests

from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox_verify import fetching
from payment_sandbox_verify import service as service_module
from payment_sandbox_verify.checks import NotVerified
from payment_sandbox_verify.fetching import ANSWER_BYTES_MAX
from payment_sandbox_verify.probing import Verdict
from payment_sandbox_verify.service import ATTEMPTS_MAX, Service
from payment_sandbox_verify.verifying import is_live, reference_sandbox, verify
from tests.verification.exchanges import DifferingSession, Exchange

ORDER = {"id": "5a4dbeef", "status": "new", "flags": ["is-test"]}
Answer = Callable[[BaseHTTPRequestHandler], None]


def says(status: int, body: bytes, kind: str = "application/json", **headers: str) -> Answer:
    """The same answer to every call."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def endless(handler: BaseHTTPRequestHandler) -> None:
    """A body without end."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def slow_body(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    _drip(handler)


def slow_head(handler: BaseHTTPRequestHandler) -> None:
    """Not even a head."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    _drip(handler)


def _drip(handler: BaseHTTPRequestHandler) -> None:
    for _ in range(300):
        handler.wfile.write(b"x")
        Event().wait(0.1)


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    """It closes the connection."""
    handler.close_connection = True


def no_http(handler: BaseHTTPRequestHandler) -> None:
    """Another protocol."""
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True


def deep(handler: BaseHTTPRequestHandler) -> None:
    """JSON of a great depth."""
    says(201, b"[" * 100_000 + b"]" * 100_000)(handler)


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """A server that gives this answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if self.raw_requestline and self.parse_request():
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                answer(self)
            else:
                self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Nobody:
    """No customer is there."""

    def visit(self, url: str) -> Any:
        raise AssertionError("nobody gets that far")

    def pay(self, url: str, what: str) -> str | None:
        raise AssertionError("nobody gets that far")

    cancel = pay

    def pay_in_steps(self, url: str, name: str, value: str) -> Iterator[None]:
        raise AssertionError("nobody gets that far")

    def choose(self, url: str, method: str) -> None:
        raise AssertionError("nobody gets that far")


HOSTILE: dict[str, tuple[Answer, str]] = {
    "html": (says(200, b"<html>hello</html>", "text/html"), "no order with id and status"),
    "html for a refusal": (
        says(403, b"<html>no</html>", "text/html"),
        "returned 403, so this server may not implement",
    ),
    "an empty body": (says(200, b""), "but no order with"),
    "an empty object": (says(201, b"{}"), "but no order with"),
    "a list": (says(201, b"[1, 2]"), "but no order with"),
    "a number": (says(201, b"7"), "but no order with"),
    "numbers for texts": (says(201, b'{"id": 7, "status": null}'), "but no order with"),
    "broken JSON": (says(201, b'{"id": "x", '), "but no order with"),
    "no UTF-8": (says(201, b'{"id": "\xff"}'), "but no order with"),
    "deep JSON": (deep, "but no order with"),
    "204": (says(204, b""), "but no order with"),
    "a redirect": (says(302, b"", Location="http://127.0.0.1:1/"), "returned 302"),
    "500": (says(500, b"oops", "text/plain"), "returned 500"),
    "401": (says(401, b"{}"), "refuses the key"),
    "429": (says(429, b"{}", Retry_After="7"), "it returned 429"),
    "503": (says(503, b"{}"), "it returned 503"),
    "an endless body": (endless, f"more than {ANSWER_BYTES_MAX >> 20} MiB"),
    "a slow body": (slow_body, "took more than 2 s"),
    "a slow head": (slow_head, "took more than 2 s"),
    "no answer": (hangs_up, "was not answered"),
    "another protocol": (no_http, "was not answered"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_hostile_server_ends_in_a_sentence(name: str) -> None:
    """One that says what is wrong; a busy server is asked again as often and as late as it wants."""
    answer, words = HOSTILE[name]
    paused: list[float] = []
    with serving(answer) as url, requests.Session() as session:
        session.trust_env = False
        pause: Callable[[float], None] = paused.append
        service = Service(url, "key", session, Nobody(), lambda: None, pause, answer_seconds=2.0)
        with pytest.raises(NotVerified, match=r".+") as told:
            is_live(service)
    assert words in str(told.value)
    assert "\n" not in str(told.value)
    is_busy = name in ("429", "503", "no answer", "another protocol")
    assert len(paused) == (ATTEMPTS_MAX - 1 if is_busy else 0)
    assert name != "429" or paused == [7.0] * (ATTEMPTS_MAX - 1)


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Nothing, until the caller has gone."""
    handler.connection.settimeout(20.0)
    with suppress(OSError):
        handler.rfile.read(1)
    handler.close_connection = True


def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls together wait for it as long as somebody would, and the orders there are not asked about."""
    monkeypatch.setattr(fetching, "TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(service_module, "HUNG_SECONDS_MAX", 0.3)
    with serving(silent) as url, requests.Session() as session:
        session.trust_env = False
        service = Service(url, "key", session, Nobody(), lambda: None, lambda seconds: None)
        for number in range(20):
            service.created_orders.add(f"order-{number}")
        begun = monotonic_seconds()
        with pytest.raises(NotVerified, match="has stopped responding"):
            is_live(service)
        assert len(service.clean_up()) == 20
        assert monotonic_seconds() - begun < 1.5
        assert service.retry_count == 1


def test_an_order_without_flags_does_not_tell() -> None:
    """Whether it is a test; then the command asks for --test or --yes-live."""
    for flags, expected in (({}, None), ({"flags": []}, True), ({"flags": ["is-test"]}, False)):
        order: dict[str, Any] = {name: value for name, value in ORDER.items() if name != "flags"} | flags
        with serving(says(201, json.dumps(order).encode())) as url, requests.Session() as session:
            session.trust_env = False
            service = Service(url, "key", session, Nobody(), lambda: None, lambda seconds: None)
            assert is_live(service) is expected


@pytest.mark.prove
def test_a_busy_server_makes_no_difference() -> None:
    """Every fifth call is 429, 502, 503 or 504, and every seventh connection breaks: all is asked again."""
    with reference_sandbox() as own:
        session = own.service._session
        request, count = session.request, iter(range(10**9))

        def sometimes(method: str, url: str, **options: Any) -> Any:
            number = next(count)
            if number % 7 == 3 and "/v1/" in url:
                raise requests.ConnectionError("gone")
            if number % 5 == 2 and "/v1/" in url:
                busy = requests.Response()
                busy.status_code, busy.raw = (429, 502, 503, 504)[number % 4], BytesIO()
                return busy
            return request(method, url, **options)

        session.request = sometimes  # type: ignore[method-assign, assignment]
        found = verify(own.service, live=False)
    assert own.service.retry_count > 50
    assert found.count(Verdict.DIFFERS) == 0


def _naive(exchange: Exchange) -> None:
    """Times without an offset, and amounts as texts."""
    if exchange.is_order:
        for name in ("created", "modified"):
            exchange.data[name] = exchange.data[name].removesuffix("+00:00")
        for attempt in exchange.data["transactions"]:
            attempt["created"] = 7


def test_odd_values_end_no_run() -> None:
    """A probe that cannot read an answer could not tell; the others go on."""
    with reference_sandbox() as own:
        own.service._session = DifferingSession(None, _naive)
        found = verify(own.service, live=False)
    assert len(found.reports) > 300


def test_a_server_that_dies_meanwhile_is_told_with_what_is_left() -> None:
    """Its orders are named, because nobody could cancel them."""
    with reference_sandbox() as own:
        session = own.service._session
        request, calls = session.request, iter(range(10**9))

        def dying(method: str, url: str, **options: Any) -> Any:
            if "/v1/" in url and next(calls) > 40:
                raise requests.ConnectionError("gone")
            return request(method, url, **options)

        session.request = dying  # type: ignore[method-assign, assignment]
        own.service.pause = lambda seconds: None
        with pytest.raises(
            NotVerified, match=r"has stopped responding: .*; these orders remain on the server: [0-9a-f-]{36}"
        ):
            verify(own.service, live=False)
