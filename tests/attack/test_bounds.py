"""Foreign text costs little, whatever it is; a listener posts nowhere but to its own address."""

import random  # noqa: TID251 (seeded: every run is the same)
import socket
from contextlib import ExitStack
from time import thread_time
from typing import Final
from urllib.parse import urlsplit

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.listening import Listener
from payment_sandbox.kernel.masking import mask
from payment_sandbox.orders.webhooks import Reply, WebhookRequest
from payment_sandbox.web.bodies import STATE_BYTES_MAX
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.snapshot_bodies import STATE_VALUES_MAX, parse_snapshot
from tests.attack import limit, scaled
from tests.support.driver import Sandbox

SEED: Final = 65
PARTS: Final = [
    *'0149aZ \n"\\%:=[]{}&-+,é',
    *("4111111111111111", "4111 1111", "%20", "%2", "cvc", '"cvv":', "card code", "basic ", "\\u00a0"),
    *("41111111-1111-4111-8111-111111111111", "79ef8de3f48599518263517c32bc065e", "0" * 30),
]
MASKED_CHARACTERS: Final = 1_000_000
MASKING_MS_MAX: Final = 100
OWN: Final = "http://127.0.0.1:9/webhook"


def masking_ms(text: str) -> float:
    """Return the milliseconds of the processor for masking a text, in the best of some runs."""
    best = float("inf")
    for _ in range(5):
        started = thread_time()
        mask(text, "0123456789abcdef-key")
        best = min(best, 1000 * (thread_time() - started))
    return best


def test_masking_any_text_costs_little() -> None:
    """Random repetitions of hostile parts, of a megabyte each, are masked in at most 100 ms."""
    draw = random.Random(SEED)
    times = []
    for _ in range(scaled(500, 20)):
        part = "".join(draw.choices(PARTS, k=draw.randint(1, 8)))
        times.append((masking_ms(part * (MASKED_CHARACTERS // len(part))), part))
    worst, part = max(times)
    limit(f"milliseconds to mask a megabyte of {part[:20]!a}", worst, MASKING_MS_MAX)


def test_snapshots_of_many_values_are_refused_before_they_are_parsed() -> None:
    """Whatever the values of a record are, too many are refused, even if the rest is no JSON."""
    for value in (b"[],", b"1,", b'"",', b"{},", b"[[]],"):
        body = b'{"orders":[[' + value * (STATE_VALUES_MAX + 1) + b"no JSON"
        with pytest.raises(RequestRefused) as refused:
            parse_snapshot(body)
        assert refused.value.status == 413, value


def test_snapshots_announced_without_a_key_refuse_nobody(sandbox: Sandbox) -> None:
    """Connections that announce the largest snapshot with a wrong key are refused, and reserve no memory."""
    address = urlsplit(sandbox.url)
    head = (
        f"PUT /control/state/ HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Basic eDp4\r\nContent-Length: {STATE_BYTES_MAX}\r\n\r\n{{"
    ).encode()
    with ExitStack() as stack:
        for _ in range(scaled(500, 20)):
            connection = socket.create_connection((address.hostname, address.port), timeout=60)
            stack.enter_context(connection).sendall(head)
            assert connection.recv(12) == b"HTTP/1.1 401"
        state = sandbox.get("/control/state/").content + b" " * (2 << 20)
        headers = {"Content-Type": "application/json"}
        url = f"{sandbox.url}/control/state/"
        restored = requests.put(url, state, headers=headers, auth=(sandbox.key, ""), timeout=60)
        assert restored.status_code == 200, restored.text


def test_a_listener_posts_nowhere_else(sandbox: Sandbox) -> None:
    """Neither the address nor a header of a server's offer is used, but the content type."""
    draw = random.Random(SEED)
    sent: list[WebhookRequest] = []

    def send(request: WebhookRequest, timeout_seconds: float) -> Reply:
        sent.append(request)
        return Reply(1.0, status=200)

    client = SandboxClient(sandbox.url, sandbox.key)
    listener = Listener(client, OWN, on_forwarded=lambda webhook: None, on_server=print, send=send)
    names = (
        "Host",
        "Authorization",
        "Transfer-Encoding",
        "Content-Length",
        "X-Admin",
        "Cookie",
        "Content-Type",
    )
    for _ in range(scaled(2000, 50)):
        offer = {
            **dict.fromkeys(("id", "webhook", "at", "order_id", "number", "status"), "x"),
            "by_hand": False,
            "url": draw.choice(["http://169.254.169.254/", f"{OWN}/../delete-all", "file:///etc/passwd", ""]),
            "headers": {draw.choice([name, name.lower()]): "a/b" for name in draw.sample(names, 3)},
            "body": "{}",
        }
        listener._forward(offer)
    assert {request.url for request in sent} == {OWN}
    assert {name.lower() for request in sent for name in request.headers} <= {"content-type"}
