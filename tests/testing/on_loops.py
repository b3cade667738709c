"""Webhooks for ASGI applications, in tests with and without an event loop; ``test_loops.py`` runs them."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.asgi import USER, Seen, starlette
from tests.support.in_process import place


def test_a_test_without_a_loop(payment_sandbox: PaymentSandbox) -> None:
    """The application runs on one event loop on the test's thread for all webhooks."""
    seen: Seen = []

    async def record(order_id: str) -> None:
        seen.append((threading.get_ident(), asyncio.get_running_loop(), USER.get()))

    payment_sandbox.deliver_to(starlette(record))
    USER.set("jan")
    payment_sandbox.act(place(payment_sandbox))
    assert len(seen) == 2
    assert len(set(seen)) == 1
    assert (seen[0][0], seen[0][2]) == (threading.get_ident(), "jan")


def test_an_application_gets_the_whole_webhook(payment_sandbox: PaymentSandbox) -> None:
    """An application receives the path, query, headers, host and body of a webhook."""
    seen: Seen = []

    async def shop(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope, await receive()))
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b"one ", "more_body": True})
        await send({"type": "http.response.body", "body": b"two"})

    payment_sandbox.deliver_to(
        shop, "https://shop.example:8443/hooks/p%C3%A4y?from=sandbox", host="shop.local"
    )
    payment_sandbox.act(place(payment_sandbox), action="visit")
    ((scope, message),) = seen
    headers = dict(scope["headers"])
    assert (scope["path"], scope["query_string"], scope["scheme"]) == ("/hooks/päy", b"from=sandbox", "https")
    assert (headers[b"host"], scope["server"]) == (b"shop.local", ("shop.example", 8443))
    assert headers[b"content-type"] == b"application/json"
    assert b"status_changed" in message["body"]
    assert payment_sandbox.webhooks[0]["attempts"][0]["response"] == {"status": 202, "body": "one two"}


def test_streams_and_background_tasks(payment_sandbox: PaymentSandbox) -> None:
    """A streamed answer arrives completely, and background tasks run to their end."""
    task_runs: Seen = []

    async def pieces() -> Any:
        yield b"a"
        await asyncio.sleep(0)
        yield b"b"

    async def answer(order_id: str) -> Response:
        return StreamingResponse(pieces(), background=BackgroundTask(task_runs.append, order_id))

    payment_sandbox.deliver_to(starlette(answer))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id, action="visit")
    assert task_runs == [order_id]
    assert payment_sandbox.webhooks[0]["attempts"][0]["response"] == {"status": 200, "body": "ab"}


@pytest.mark.parametrize("timing", ["before", "after"])
def test_an_exception_is_a_500_with_its_traceback(payment_sandbox: PaymentSandbox, timing: str) -> None:
    """An exception is reported with its traceback, with or without an answer of the framework."""

    async def fail(order_id: str) -> None:
        raise LookupError("no such sale")

    async def fail_before_response(scope: Any, receive: Any, send: Any) -> None:
        raise LookupError("no such sale")

    payment_sandbox.deliver_to(starlette(fail) if timing == "after" else fail_before_response)
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (attempt,) = payment_sandbox.webhooks[0]["attempts"]
    assert "LookupError: no such sale" in (attempt.get("traceback") or "")
    if timing == "after":
        assert attempt["response"] is not None
        assert attempt["response"]["status"] == 500
    else:
        assert attempt["error"] == "LookupError: no such sale"


async def returns_without_response(scope: Any, receive: Any, send: Any) -> None:
    """An application that sends no answer."""


async def starts_with_a_body(scope: Any, receive: Any, send: Any) -> None:
    """An application that sends no status."""
    await send({"type": "http.response.body", "body": b"x"})


@pytest.mark.parametrize(
    ("app", "message"),
    [(returns_without_response, "without a complete response"), (starts_with_a_body, "before its status")],
)
def test_an_application_that_violates_asgi(payment_sandbox: PaymentSandbox, app: Any, message: str) -> None:
    """An incomplete answer is reported as an error of the attempt."""
    payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert message in str(payment_sandbox.webhooks[0]["attempts"][0]["error"])


async def hangs(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that never answers."""
    await asyncio.Event().wait()


@pytest.mark.parametrize("manner", ["hangs", "blocks"])
def test_an_asgi_application_that_hangs(
    payment_sandbox: PaymentSandbox, manner: str, too_late: threading.Event
) -> None:
    """A hanging application is cancelled; one that blocks its loop counts as unanswered."""

    async def blocks(scope: Any, receive: Any, send: Any) -> None:
        too_late.wait(20)

    app = hangs if manner == "hangs" else blocks
    payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert payment_sandbox.webhooks[0]["attempts"][0]["error"] == "no answer within 5 seconds"
    assert f"in {app.__name__}" in payment_sandbox.timeline()


async def lingers(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that needs half a second for its cancellation."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.5)


@pytest.mark.parametrize("is_awaited", [True, False])
def test_a_late_end_of_a_handler_interrupts_nothing_else(
    payment_sandbox: PaymentSandbox, is_awaited: bool
) -> None:
    """A handler that is slow to end after its cancellation interrupts neither the loop nor the test."""
    payment_sandbox.deliver_to(lingers)

    async def run_test() -> None:
        order_id = await payment_sandbox.aio.run(place, payment_sandbox)
        await payment_sandbox.aio.act(order_id, action="visit")

    if is_awaited:
        asyncio.run(run_test())
    else:
        payment_sandbox.act(place(payment_sandbox), action="visit")
    assert payment_sandbox.webhooks[0]["attempts"][0]["error"] == "no answer within 5 seconds"
    assert "in lingers" in payment_sandbox.timeline()


def test_every_webhook_has_its_own_traceback_and_context(payment_sandbox: PaymentSandbox) -> None:
    """Webhooks on the same loop do not share tracebacks or context variables."""
    seen: Seen = []

    async def fail(order_id: str) -> Response:
        seen.append(USER.get())
        try:
            raise LookupError(f"try {len(seen)}")
        except LookupError:
            logging.getLogger("shop").exception("it failed")
        return Response(status_code=500)

    payment_sandbox.deliver_to(starlette(fail))
    USER.set("first")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    USER.set("second")
    payment_sandbox.clock.advance("PT2M")
    tracebacks = [attempt.get("traceback") or "" for attempt in payment_sandbox.webhooks[0]["attempts"]]
    assert [f"LookupError: try {number}" in text for number, text in enumerate(tracebacks, 1)] == [True, True]
    assert seen == ["first", "second"]


def test_a_host_is_sent(payment_sandbox: PaymentSandbox) -> None:
    """Webhooks have a Host header that frameworks with a host check accept."""

    async def answer(order_id: str) -> None:
        pass

    app = starlette(answer)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["testserver"])
    payment_sandbox.deliver_to(app)
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert payment_sandbox.webhooks[0]["state"] == "delivered"


def test_a_synchronous_endpoint_is_reported(payment_sandbox: PaymentSandbox) -> None:
    """The timeline reports that a synchronous endpoint ran on a worker thread."""

    def fail(request: Request) -> Response:
        raise LookupError("no such table")

    payment_sandbox.deliver_to(Starlette(routes=[Route("/webhook", fail, methods=["POST"])]))
    payment_sandbox.act(place(payment_sandbox), action="visit")
    assert "The framework ran the handler on a worker thread" in payment_sandbox.timeline()
