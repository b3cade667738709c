"""Failing, hanging and odd handlers of WSGI and ASGI shops: what counts, and what the timeline shows."""

import asyncio
import itertools
import logging
import re
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
import trio
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse, StreamingResponse
from werkzeug.wrappers import Response

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import AT_MOST_SECONDS, place, shop_that
from tests.testing.conftest import LateHandlers
from tests.testing.starlette_shop import starlette

NO_ANSWER = "no answer within 0.3 seconds"
IMPATIENT = {"webhook_timeout": 0.3}


def visit(sandbox: PaymentSandbox, runner: str = "no loop") -> Any:
    """Open the page of a new order in a call that blocks or is awaited; return the attempt of its webhook."""

    async def awaited() -> None:
        order_id = await sandbox.aio.run(place, sandbox)
        await sandbox.aio.act(order_id, action="visit")

    calls: dict[str, Callable[[], object]] = {
        "no loop": lambda: sandbox.act(place(sandbox), action="visit"),
        "asyncio": lambda: asyncio.run(awaited()),
        "trio": lambda: trio.run(awaited),
    }
    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on the test thread
        thread.submit(calls[runner]).result(AT_MOST_SECONDS)
    return sandbox.webhooks[0]["attempts"][0]


def blocking_wsgi(release: threading.Event) -> Any:
    """A WSGI shop that blocks its thread."""

    def hang(order_id: str) -> None:
        release.wait(AT_MOST_SECONDS)

    return shop_that(hang)


def asgi(wait: Callable[[threading.Event], Awaitable[object]]) -> Callable[[threading.Event], Any]:
    """An ASGI shop that waits before its response."""

    def create(release: threading.Event) -> Any:
        async def hang(scope: Any, receive: Any, send: Any) -> None:
            await wait(release)

        return hang

    return create


async def block(release: threading.Event) -> None:
    """Block the loop."""
    release.wait(AT_MOST_SECONDS)


blocking_asgi = asgi(block)
awaiting = asgi(lambda release: asyncio.Event().wait())
sleeping = asgi(lambda release: trio.sleep_forever())
HANGING: list[tuple[Callable[[threading.Event], Any], str, Literal["waiting", "own"]]] = [
    # the shop, the loop of the test, and the thread of the handler
    (blocking_wsgi, "no loop", "waiting"),
    (blocking_wsgi, "no loop", "own"),
    (blocking_asgi, "no loop", "waiting"),
    (blocking_asgi, "asyncio", "waiting"),
    (awaiting, "no loop", "waiting"),
    (awaiting, "asyncio", "waiting"),
    (sleeping, "trio", "waiting"),
]


def test_handlers_that_hang_count_as_unanswered(
    payment_sandbox_server: PaymentSandboxServer, late_handlers: LateHandlers
) -> None:
    """They are cancelled or abandoned, the tests go on, and the timelines and the terminal show their locations."""
    late_handlers.expected = len(HANGING)
    end_of_test = threading.Event()
    with ExitStack() as open_projects, ThreadPoolExecutor(len(HANGING)) as threads:  # all wait at once
        projects = [open_projects.enter_context(payment_sandbox_server.project(IMPATIENT)) for _ in HANGING]
        for project, (shop, _, thread) in zip(projects, HANGING, strict=True):
            release = late_handlers.all_shown if thread == "waiting" else end_of_test
            project.deliver_to(shop(release), thread=thread)
        attempts = list(threads.map(visit, projects, [loop for _, loop, _ in HANGING]))
        end_of_test.set()
        for project, attempt, row in zip(projects, attempts, HANGING, strict=True):
            assert (attempt["error"], attempt["response"]) == (NO_ANSWER, None), row
            is_located = row[:2] != (blocking_asgi, "asyncio")  # the timeline does not locate it there
            assert ("in hang" in project.timeline()) == is_located, row
        assert "Location of the handler:" in projects[0].timeline()
    assert sum("the webhook handler" in line for line in late_handlers.lines) == len(HANGING)
    for line in late_handlers.lines:
        assert re.search(rf"handler \S+ \(\S+\.py, line \d+(, in (hang|block))?\): {NO_ANSWER}\. ", line)
        assert "Ctrl-C" in line


def fail(order_id: str) -> None:
    """Fail in a WSGI handler."""
    raise KeyError("sku-77")


async def fail_on_loop(order_id: str) -> None:
    """Fail in a handler of an ASGI framework."""
    raise KeyError("sku-77")


def logging_shop() -> Any:
    """A WSGI shop whose framework logs exceptions and answers 500."""
    shop = shop_that(fail)
    shop.testing = False
    return shop


@pytest.mark.parametrize(
    ("application", "status"),
    [
        (shop_that(fail), None),
        (logging_shop(), 500),
        (starlette(fail_on_loop), 500),
    ],
    ids=["WSGI", "WSGI with a framework that answers", "ASGI with a framework"],
)
def test_the_traceback_of_a_handler_is_shown(
    payment_sandbox: PaymentSandbox, application: Any, status: int | None
) -> None:
    """The traceback of the shop's own code is on the timeline, whether the framework propagates or answers."""
    payment_sandbox.deliver_to(application)
    attempt = visit(payment_sandbox)
    assert (attempt["response"] or {}).get("status") == status
    assert status or attempt["error"] == "KeyError: 'sku-77'"
    traceback, report = attempt.get("traceback") or "", payment_sandbox.timeline()
    assert "KeyError: 'sku-77'" in traceback
    assert "in fail" in traceback
    assert "site-packages" not in traceback, "only the shop's own code is shown"
    assert "      KeyError: 'sku-77'" in report
    assert "Your handler failed with an exception, which the timeline shows." in report
    assert "log" not in report.replace(str(Path(__file__).parents[1]), "")  # a traceback names files
    assert "listen" not in report
    assert all("_Listener" not in type(handler).__name__ for handler in logging.root.handlers)


async def stream(order_id: str) -> StreamingResponse:
    """Answer with a stream on an event loop."""

    async def pieces() -> Any:
        yield b"a"
        await asyncio.sleep(0)
        yield b"b"

    return StreamingResponse(pieces())


@pytest.mark.parametrize(
    ("application", "body"),
    [
        (starlette(stream), "ab"),
        (shop_that(lambda order_id: Response(itertools.repeat(b"x" * 1000))), "x" * 4096),
    ],
    ids=["ASGI", "endless"],
)
def test_an_answer_in_parts_counts_by_its_status(
    payment_sandbox: PaymentSandbox, application: Any, body: str
) -> None:
    """Parts keep their order, and an endless body is cut."""
    payment_sandbox.deliver_to(application)
    attempt = visit(payment_sandbox)
    assert attempt["response"] == {"status": 200, "body": body}
    assert payment_sandbox.webhooks[0]["state"] == "delivered"


def answer_and_fail_at_the_end(order_id: str) -> Response:
    """Answer a WSGI request, and fail in the code that ends it."""
    response = Response("noted")
    response.call_on_close(lambda: fail(order_id))
    return response


async def answer_and_fail_in_a_task(order_id: str) -> Any:
    """Answer an ASGI request, and fail in its background task."""
    return PlainTextResponse("noted", background=BackgroundTask(fail, order_id))


@pytest.mark.parametrize(
    ("application", "runner"),
    [
        (shop_that(answer_and_fail_at_the_end), "no loop"),
        (starlette(answer_and_fail_in_a_task), "no loop"),
        (starlette(answer_and_fail_in_a_task), "asyncio"),
    ],
)
def test_a_failure_after_the_answer_is_a_finding(
    payment_sandbox: PaymentSandbox, application: Any, runner: str
) -> None:
    """The exception is stored with the attempt and shown in reports; the finding is healed by a resend."""
    payment_sandbox.deliver_to(application)
    attempt = visit(payment_sandbox, runner)
    assert attempt["response"] == {"status": 200, "body": "noted"}
    assert attempt["warning"] == "answered 200, then failed: KeyError: 'sku-77'"
    assert "KeyError: 'sku-77'" in attempt["traceback"]
    assert attempt["warning"] in payment_sandbox.timeline()
    sentence = "Your shop answered 200, then failed: KeyError: 'sku-77'"
    assert [each.healed for each in payment_sandbox.review() if each.problem == sentence] == [""]
    payment_sandbox.deliver_to(shop_that(lambda order_id: None))
    payment_sandbox.client.redeliver(payment_sandbox.webhooks[0]["id"])
    (healed,) = (each.healed for each in payment_sandbox.review() if each.problem == sentence)
    assert healed


@pytest.mark.payment_settings(**IMPATIENT)
def test_a_late_handler_that_calls_the_sandbox_holds_no_lock(
    payment_sandbox: PaymentSandbox, too_late: threading.Event
) -> None:
    """A late handler is not interrupted in its calls, so it holds no lock afterwards."""

    def call(order_id: str) -> None:
        while not too_late.is_set():
            payment_sandbox.client.orders()
            place(payment_sandbox)

    payment_sandbox.deliver_to(shop_that(call))
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id, action="visit")
    orders: list[Any] = []
    other = threading.Thread(target=lambda: orders.append(payment_sandbox.act(order_id)))
    other.start()
    other.join(AT_MOST_SECONDS)
    assert [order["status"] for order in orders] == ["completed"]
