"""Submits a test's forms as its observer says: twice, with another value, or after another customer."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import copy_context
from io import BytesIO
from threading import Thread
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.testing import loops
from payment_sandbox.testing.environments import body_of

FixtureLookup = Callable[[str], Any]
"""Looks up the attribute of a test case that corresponds to a fixture; returns None if there is none."""


class Submission(NamedTuple):
    """A varied submission of a form: what the customer submits, and what is submitted besides.

    The second submission follows, unless ``postpone`` takes it for later. With ``after_other``, it comes
    first, from another customer, and then ``after_other`` is called.
    """

    body: bytes
    second: bytes | None = None
    postpone: Callable[[Callable[[], None]], None] | None = None
    after_other: Callable[[], None] | None = None


class Observer(Protocol):
    """Observes one run of a test."""

    def attach(self, project: Any, lookup: FixtureLookup | None = None) -> None:
        """Observe the test's project, which is a ``PaymentSandbox``."""
        ...

    def end(self, failure: BaseException | None) -> None:
        """Judge the run at the end of its test."""
        ...

    def submit(self, path: str, body: bytes) -> Submission | None:
        """Return the variation of a form that the test submits, if any."""
        ...

    def visit(self, url: str, cookies: str) -> None:
        """Record a page that the test opens."""
        ...


_observers: Final[list[Observer]] = []


def set_observer(observer: Observer | None) -> None:
    """Set the observer of the current test, or end it with None."""
    _observers[:] = [observer] if observer is not None else []


def current_observer() -> Observer | None:
    """Return the observer of the current test, if any."""
    return _observers[-1] if _observers else None


Environ = dict[str, Any]
Scope = dict[str, Any]
WsgiAnswer = Callable[[Environ, Any], Any]
"""Answers a request, given ``start_response``."""
CUSTOMER_HEADERS: Final = ("cookie", "authorization")


def answer_submission(observer: Observer, environ: Environ, answer: WsgiAnswer, start_response: Any) -> Any:
    """Answer a WSGI request from a test; the response to its own submission counts."""
    path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
    if method == "GET":
        observer.visit(f"{path}?{environ.get('QUERY_STRING', '')}", environ.get("HTTP_COOKIE", ""))
    if method != "POST":
        return answer(environ, start_response)
    body = body_of(environ)
    varied = observer.submit(path, body) or Submission(body)
    own = _with_body(environ, body, varied.body)
    if varied.second is None:
        return answer(own, start_response)
    copy, context = _with_body(environ, body, varied.second), copy_context()

    def repeat() -> None:
        with suppress(Exception):
            context.run(answer, copy, lambda *_: lambda piece: None)

    if varied.after_other is not None:
        for name in CUSTOMER_HEADERS:
            copy.pop(f"HTTP_{name.upper()}", None)
        repeat()
        varied.after_other()
        return answer(own, start_response)
    if varied.postpone is not None:
        varied.postpone(repeat)
        return answer(own, start_response)
    try:
        return answer(own, start_response)
    finally:
        repeat()


def _with_body(environ: Environ, before: bytes, body: bytes) -> Environ:
    """Return a request with this body; an unchanged body keeps its declared length."""
    length = {} if body == before else {"CONTENT_LENGTH": str(len(body))}
    return {**environ, "wsgi.input": BytesIO(body), **length}


def read_whole(pieces: Iterable[bytes]) -> list[bytes]:
    """Read a whole response, and close it."""
    try:
        return list(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer_submission_on_loop(
    observer: Observer, scope: Scope, receive: Receive, send: Send, answer: Answer
) -> None:
    """Answer an ASGI request from a test; the response to its own submission counts."""
    if scope["method"] == "GET":
        cookies = [value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie"]
        observer.visit(f"{scope['path']}?{scope['query_string'].decode()}", "; ".join(cookies))
    if scope["method"] != "POST":
        await answer(scope, receive, send)
        return
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    varied = observer.submit(scope["path"], body) or Submission(body)

    async def submit() -> None:
        await answer(_with_length(scope, body, varied.body), _create_receive(varied.body), send)

    async def discard(message: Any) -> None:
        pass

    async def repeat() -> None:
        if varied.second is not None:
            headers = scope["headers"]
            if varied.after_other is not None:
                headers = [each for each in headers if each[0].decode() not in CUSTOMER_HEADERS]
            copy = _with_length({**scope, "headers": headers}, body, varied.second)
            with suppress(Exception):
                await answer(copy, _create_receive(varied.second), discard)

    if varied.after_other is not None:
        await repeat()
        varied.after_other()
        await submit()
        return
    await submit()
    if varied.postpone is None:
        await repeat()
    else:

        def repeat_now() -> None:
            thread = Thread(target=lambda: loops.asyncio.run(repeat()))  # this thread may run a loop
            thread.start()
            thread.join()

        varied.postpone(repeat_now)


def _create_receive(body: bytes) -> Receive:
    messages: Iterator[Any] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    return receive


def _with_length(scope: Scope, before: bytes, body: bytes) -> Scope:
    """Return a request with the length of this body; an unchanged body keeps its declared length."""
    if body == before:
        return dict(scope)
    others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(len(body)).encode())]}
