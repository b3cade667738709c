"""Submits a form of the shop another way: twice, with another number, or by another customer before."""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from io import BytesIO
from threading import Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import body_of

POST: Final = "POST"
OF_CUSTOMER: Final = ("cookie", "authorization")
_NUMBER: Final = re.compile(rb"(?<![^=:,\[\s])([1-9]\d{0,5})(?=\s*(?:[&,}\]]|\r\n--|$))")


class Pressing(NamedTuple):
    """How a form is submitted; without values, twice: ``at_once``, or one after the other."""

    at_once: bool = False
    more: int = 0  # its first whole number is changed by this, and it is submitted once
    by_another: Callable[[], None] | None = None  # another customer comes before; called when they are gone


Pressed = Callable[[str, str, bool], Pressing | None]
"""Asked for every form that the test submits: method, path, and whether the form has a whole number."""

_pressed: Final[list[Pressed]] = []  # the newest last


def set_pressed(pressed: Pressed | None) -> None:
    """Ask this one from now on; None: nobody."""
    _pressed.clear()
    if pressed is not None:
        _pressed.append(pressed)


def is_watched(method: str) -> bool:
    """Whether somebody asks for the forms of this method."""
    return method == POST and bool(_pressed)


def _pressing_of(method: str, path: str, body: bytes) -> Pressing | None:
    return _pressed[-1](method, path, _NUMBER.search(body) is not None) if is_watched(method) else None


def with_number(body: bytes, more: int) -> bytes:
    """A form whose first whole number is changed: of a query, JSON or multipart."""
    return _NUMBER.sub(lambda number: str(int(number[1]) + more).encode(), body, count=1)


class Again:
    """A WSGI request that is made a second time, at the same moment or afterwards."""

    def __init__(self, environ: dict[str, Any], at_once: bool, ask: Callable[[dict[str, Any]], Any]) -> None:
        context = copy_context()

        def ask_again() -> None:
            with suppress(Exception):
                context.run(ask, environ)

        self._ask = ask_again
        self._thread = Thread(target=ask_again, name="second click") if at_once else None
        if self._thread is not None:
            start(self._thread)

    def end(self) -> None:
        """Return when the second request has been answered; whatever it raises is the shop's matter."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._ask()


def pressed(
    environ: dict[str, Any], answer: Callable[[dict[str, Any], Any], Any], start_response: Any = None
) -> Any:
    """Answer a WSGI request of a test, as the rehearsal says."""
    if not is_watched(environ["REQUEST_METHOD"]):
        return answer(environ, start_response)
    body = body_of(environ)
    environ["wsgi.input"] = BytesIO(body)
    how = _pressing_of(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
    if how is None:
        return answer(environ, start_response)
    copy = {**environ, "wsgi.input": BytesIO(body)}
    if how.more:
        filled = with_number(body, how.more)
        return answer(
            {**environ, "wsgi.input": BytesIO(filled), "CONTENT_LENGTH": str(len(filled))}, start_response
        )
    if how.by_another is not None:
        for name in OF_CUSTOMER:
            copy.pop(f"HTTP_{name.upper()}", None)
        Again(copy, False, lambda asked: answer(asked, _ignored)).end()
        how.by_another()
        return answer(environ, start_response)
    again = Again(copy, how.at_once, lambda asked: answer(asked, _ignored))
    try:
        return answer(environ, start_response)
    finally:
        again.end()


def _ignored(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:
    """Begin a response that nobody reads."""
    return lambda piece: None


Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


async def pressed_on_loop(scope: dict[str, Any], receive: Receive, send: Send, answer: Answer) -> None:
    """Answer an ASGI request of a test, as the rehearsal says; the first response counts."""
    if not is_watched(scope["method"]):
        await answer(scope, receive, send)
        return
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    how = _pressing_of(scope["method"], scope["path"], body)
    if how is None:
        await answer(scope, _replay(body), send)
    elif how.more:
        filled = with_number(body, how.more)
        await answer(_with_length(scope, len(filled)), _replay(filled), send)
    elif how.by_another is not None:
        with suppress(Exception):
            await answer(_of_another(scope), _replay(body), _sent_to_nobody)
        how.by_another()
        await answer(scope, _replay(body), send)
    else:
        await _twice(how, scope, body, send, answer)


async def _twice(how: Pressing, scope: dict[str, Any], body: bytes, send: Send, answer: Answer) -> None:
    first = answer(dict(scope), _replay(body), send)
    second = answer(dict(scope), _replay(body), _sent_to_nobody)
    if how.at_once:
        from asyncio import gather  # here, because few shops have a loop

        await gather(first, second)
    else:
        await first
        await second


def _replay(body: bytes) -> Receive:
    """Receive a body once more."""
    messages: Iterator[Any] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Any:
        return next(messages, {"type": "http.disconnect"})

    return again


def _with_length(scope: dict[str, Any], length: int) -> dict[str, Any]:
    others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(length).encode())]}


def _of_another(scope: dict[str, Any]) -> dict[str, Any]:
    """The same request without what makes the customer known."""
    return {
        **scope,
        "headers": [(name, value) for name, value in scope["headers"] if name.decode() not in OF_CUSTOMER],
    }


async def _sent_to_nobody(message: Any) -> None:
    """A response that nobody reads."""
