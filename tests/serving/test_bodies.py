"""What is kept of the bodies that clients send."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from payment_sandbox.serving import bodies
from payment_sandbox.serving.bodies import Bodies, Body, refusal
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.paths import STATE_PATH
from tests.support.driver import Sandbox

PIECE = b"x" * (1 << 16)


def ran(work: Coroutine[Any, Any, Body | None]) -> Body | None:
    """What it returns; on a thread of its own, because this one may have a running loop from a browser."""
    with ThreadPoolExecutor(1) as own:
        return own.submit(asyncio.run, work).result()


def sent(*pieces: bytes, is_gone: bool = False) -> Callable[[], Awaitable[Any]]:
    """A client that sends these pieces, and then perhaps goes."""
    left = list(pieces)

    async def receive() -> Any:
        if not left:
            return {"type": "http.disconnect"}
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left) or is_gone}

    return receive


def test_a_body_over_its_limit_is_read_and_dropped() -> None:
    """Only a snapshot may be larger than a mebibyte, and it is kept whole."""
    pieces = [PIECE] * 40
    dropped = ran(Bodies().receive("/v1/orders/", sent(*pieces)))
    kept = ran(Bodies().receive(STATE_PATH, sent(*pieces)))
    assert dropped is not None
    assert kept is not None
    assert (len(dropped.data), dropped.length) == (BODY_BYTES_MAX, 40 * len(PIECE))
    assert (len(kept.data), kept.is_whole) == (40 * len(PIECE), True)


def test_snapshots_have_a_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is being received counts until it was used, or until its client has gone."""
    monkeypatch.setattr(bodies, "SNAPSHOTS_BYTES_MAX", 2 * len(PIECE))
    received = Bodies()

    def received_as(*pieces: bytes, **how: Any) -> Any:
        return ran(received.receive(STATE_PATH, sent(*pieces, **how)))

    first = received_as(PIECE)
    assert received_as(PIECE, is_gone=True) is None
    second = received_as(PIECE, PIECE)
    refused = refusal(STATE_PATH, second)
    assert refused is not None
    assert refused.head is not None
    assert refused.head.status == 503
    received.done(STATE_PATH, second)
    received.done(STATE_PATH, first)
    third = received_as(PIECE, PIECE)
    assert refusal(STATE_PATH, third) is None


def test_a_client_that_sends_too_much_reads_why(sandbox: Sandbox) -> None:
    """Although the body is dropped, it is read to its end; the connection can be used again."""
    with requests.Session() as http:
        http.auth = (sandbox.key, "")
        for body in (b"[" * (8 << 20), iter([b"[" * (1 << 20)] * 8)):
            answer = http.post(f"{sandbox.url}/v1/orders/", data=body, timeout=10)
            assert answer.status_code == 413
            assert "over 1048576 bytes" in answer.json()["error"]["value"]
        assert http.get(f"{sandbox.url}/v1/orders/nothing/", timeout=10).status_code == 404


def test_a_large_snapshot_is_restored_with_and_without_the_last_slash(sandbox: Sandbox) -> None:
    """Larger than any other body may be."""
    for _ in range(3):
        sandbox.create(extra={"note": "x" * 900_000})
    snapshot = sandbox.get("/control/state/").content
    assert len(snapshot) > 2 << 20
    for path in ("/control/state/", "/control/state"):
        answer = requests.put(
            f"{sandbox.url}{path}",
            data=snapshot,
            headers={"Content-Type": "application/json"},
            auth=(sandbox.key, ""),
            timeout=30,
        )
        assert answer.status_code == 200, answer.text[:200]
