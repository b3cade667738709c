"""Hostile and broken servers: verify ends with one sentence, and cleans up its orders."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Thread
from typing import Any

import pytest
import requests

from payment_sandbox_verify import service as service_module
from payment_sandbox_verify.answer import CannotTell, NotVerified
from payment_sandbox_verify.cleaning import clean_up
from payment_sandbox_verify.payers import PAGES_MAX
from payment_sandbox_verify.service import ANSWER_BYTES_MAX, ATTEMPTS_MAX, Service
from payment_sandbox_verify.verifying import Verdict, is_live, reference_sandbox, verify
from tests.verification.exchanges import AlteringSession, Exchange
from tests.verification.scenes import scenes_called

ORDER = {"id": "5a4dbeef", "status": "new", "flags": ["is-test"]}
Responder = Callable[[BaseHTTPRequestHandler], None]


def respond_with(status: int, body: bytes, kind: str = "application/json", **headers: str) -> Responder:
    """Return a responder with a fixed response."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Type", kind)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


def send_endless_body(handler: BaseHTTPRequestHandler) -> None:
    """Send an endless body."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b" " * 65_536)


def send_slow_body(handler: BaseHTTPRequestHandler) -> None:
    """Send a body byte by byte."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    _send_slowly(handler)


def send_slow_head(handler: BaseHTTPRequestHandler) -> None:
    """Send a header byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    _send_slowly(handler)


def _send_slowly(handler: BaseHTTPRequestHandler) -> None:
    for _ in range(300):
        handler.wfile.write(b"x")
        Event().wait(0.1)


def close_connection(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without a response."""
    handler.close_connection = True


def send_smtp_greeting(handler: BaseHTTPRequestHandler) -> None:
    """Speak another protocol than HTTP."""
    handler.wfile.write(b"220 mail.example ESMTP\r\n")
    handler.close_connection = True


def send_deep_json(handler: BaseHTTPRequestHandler) -> None:
    """Send deeply nested JSON."""
    respond_with(201, b"[" * 100_000 + b"]" * 100_000)(handler)


@contextmanager
def serve(respond: Responder) -> Iterator[str]:
    """Serve this response to every request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if self.raw_requestline and self.parse_request():
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                respond(self)
            else:
                self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            pass

    class QuietServer(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *arguments: Any) -> None:
            pass

    server = QuietServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


HOSTILE: dict[str, tuple[Responder, str]] = {
    "html": (respond_with(200, b"<html>hello</html>", "text/html"), "expected an order with id and status"),
    "html for a refusal": (
        respond_with(403, b"<html>no</html>", "text/html"),
        "returned 403, expected 201 with an order: --url must be the base address of a server",
    ),
    "an empty body": (respond_with(200, b""), "expected an order with"),
    "an empty object": (respond_with(201, b"{}"), "expected an order with"),
    "a list": (respond_with(201, b"[1, 2]"), "expected an order with"),
    "a number": (respond_with(201, b"7"), "expected an order with"),
    "numbers for texts": (respond_with(201, b'{"id": 7, "status": null}'), "expected an order with"),
    "broken JSON": (respond_with(201, b'{"id": "x", '), "expected an order with"),
    "no UTF-8": (respond_with(201, b'{"id": "\xff"}'), "expected an order with"),
    "deep JSON": (send_deep_json, "expected an order with"),
    "204": (respond_with(204, b""), "expected an order with"),
    "a redirect": (respond_with(302, b"", Location="http://127.0.0.1:1/"), "returned 302"),
    "500": (respond_with(500, b"oops", "text/plain"), "returned 500"),
    "401": (respond_with(401, b"{}"), "refuses the key"),
    "429": (respond_with(429, b"{}", Retry_After="7"), "it returned 429"),
    "503": (respond_with(503, b"{}"), "it returned 503"),
    "an endless body": (send_endless_body, f"more than {ANSWER_BYTES_MAX >> 20} MiB"),
    "a slow body": (send_slow_body, "took more than 2 s"),
    "a slow head": (send_slow_head, "took more than 2 s"),
    "no answer": (close_connection, "was not answered"),
    "another protocol": (send_smtp_greeting, "was not answered"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_every_hostile_server_ends_in_a_sentence(name: str) -> None:
    """verify ends with one line about the problem; a busy server is retried after its delays."""
    respond, words = HOSTILE[name]
    delays: list[float] = []
    with serve(respond) as url, requests.Session() as session:
        session.trust_env = False
        pause: Callable[[float], None] = delays.append
        service = Service(url, "key", session, pause=pause)
        service.answer_seconds = 2.0
        with pytest.raises(NotVerified, match=r".+") as raised:
            is_live(service)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    is_busy = name in ("429", "503", "no answer", "another protocol")
    assert len(delays) == (ATTEMPTS_MAX - 1 if is_busy else 0)
    assert name != "429" or delays == [7.0] * (ATTEMPTS_MAX - 1)


def keep_silent(calls: list[str]) -> Responder:
    """Return a responder that sends nothing until the client disconnects."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        calls.append(handler.path)
        handler.connection.settimeout(20.0)
        with suppress(OSError):
            handler.rfile.read(1)
        handler.close_connection = True

    return respond


def test_a_server_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total time spent on a hanging server is limited, and its orders are not read."""
    monkeypatch.setattr(service_module, "TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(service_module, "monotonic_seconds", count(step=30).__next__)
    calls: list[str] = []
    with serve(keep_silent(calls)) as url, requests.Session() as session:
        session.trust_env = False
        service = Service(url, "key", session, pause=lambda seconds: None)
        for number in range(20):
            service.created_orders.add(f"order-{number}")
        with pytest.raises(NotVerified, match="has stopped responding"):
            is_live(service)
        assert len(clean_up(service)) == 20
        assert set(calls) <= {"/v1/orders/"}, "no order was read"
        assert service.retry_count == 1


def test_an_order_without_flags_has_an_unknown_mode() -> None:
    """Without flags, it is unknown whether the account is in live mode."""
    for flags, expected in (({}, None), ({"flags": []}, True), ({"flags": ["is-test"]}, False)):
        order: dict[str, Any] = {name: value for name, value in ORDER.items() if name != "flags"} | flags
        with serve(respond_with(201, json.dumps(order).encode())) as url, requests.Session() as session:
            session.trust_env = False
            service = Service(url, "key", session, pause=lambda seconds: None)
            assert is_live(service) is expected


def _malform_times(exchange: Exchange) -> None:
    """Remove the offsets of times, and return a number as the time of creation."""
    if exchange.is_order:
        for name in ("created", "modified"):
            exchange.data[name] = exchange.data[name].removesuffix("+00:00")
        for attempt in exchange.data["transactions"]:
            attempt["created"] = 7


def test_malformed_values_do_not_stop_a_run() -> None:
    """Values of other types are differences, and the conversation goes on."""
    scenes = scenes_called("conditions", "credit-card, paid", "QR requests")
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(None, _malform_times)
        verification = verify(reference, {}, live=False, scenes=scenes)
    differing = [rule for rule, each in verification.reports.items() if each.verdict is Verdict.DIFFERS]
    assert sorted(differing) == ["SET-19", "TX-06"]


def test_a_server_that_dies_is_reported_with_its_remaining_orders() -> None:
    """If the server dies, verify names the orders that it could not cancel."""
    with reference_sandbox() as reference:
        session = reference.service._session
        request, calls = session.request, iter(range(10**9))

        def fail_later(method: str, url: str, **options: Any) -> Any:
            if "/v1/" in url and next(calls) > 40:
                raise requests.ConnectionError("gone")
            return request(method, url, **options)

        session.request = fail_later  # type: ignore[method-assign, assignment]
        reference.service.pause = lambda seconds: None
        with pytest.raises(
            NotVerified, match=r"has stopped responding: .*; these orders remain on the server: [0-9a-f-]{36}"
        ):
            verify(reference, {}, live=False)


CARD_PAGE = b"""<form method="post"><input type="radio" name="card" value="challenge">
<button name="action" value="pay">Pay</button></form>"""


def test_a_page_that_never_ends_a_payment_is_given_up() -> None:
    """A card page that shows its form again after each payment ends the payment after a few pages."""
    with serve(respond_with(200, CARD_PAGE, "text/html")) as url, requests.Session() as session:
        session.trust_env = False
        payer = Service(url, "key", session, pause=lambda seconds: None).payer
        with pytest.raises(CannotTell, match="not over after 8 pages"):
            payer.act(url, "pay", "challenge", "10.00 EUR")


def test_a_payment_may_take_as_many_pages_as_allowed() -> None:
    """A payment that ends on the last allowed page is complete."""
    pages = iter([CARD_PAGE] * PAGES_MAX)

    def respond(handler: BaseHTTPRequestHandler) -> None:
        respond_with(200, next(pages, b"<p>Thank you</p>"), "text/html")(handler)

    with serve(respond) as url, requests.Session() as session:
        session.trust_env = False
        payer = Service(url, "key", session, pause=lambda seconds: None).payer
        assert payer.act(f"{url}/pay/", "pay", "challenge", "10.00 EUR") is None
    assert next(pages, None) is None
