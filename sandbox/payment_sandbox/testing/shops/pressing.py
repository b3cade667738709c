"""Submits a form of the shop once more, when a rehearsal says that the customer has clicked twice."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import copy_context
from io import BytesIO
from threading import Thread
from typing import Any, Final

from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import body_of

POST: Final = "POST"
TOGETHER: Final = "together"

Pressed = Callable[[str, str], str | None]
"""Asked for every form that the test submits: the way in which it is submitted again, if it is."""

_pressed: Final[list[Pressed]] = []  # the newest last


def set_pressed(pressed: Pressed | None) -> None:
    """Ask this one from now on; None: nobody."""
    _pressed.clear()
    if pressed is not None:
        _pressed.append(pressed)


def way_of(method: str, path: str) -> str | None:
    """The way in which a request of the test is made again; None if it is not."""
    return _pressed[-1](method, path) if method == POST and _pressed else None


class Again:
    """A WSGI request that is made a second time, at the same moment or afterwards."""

    def __init__(self, environ: dict[str, Any], way: str, ask: Callable[[dict[str, Any]], Any]) -> None:
        body = body_of(environ)
        environ["wsgi.input"] = BytesIO(body)
        copy = {**environ, "wsgi.input": BytesIO(body)}
        context = copy_context()

        def ask_again() -> None:
            with suppress(Exception):
                context.run(ask, copy)

        self._ask = ask_again
        self._thread = Thread(target=ask_again, name="second click") if way == TOGETHER else None
        if self._thread is not None:
            start(self._thread)

    def end(self) -> None:
        """Return when the second request has been answered; whatever it raises is the shop's matter."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._ask()


async def asked_again(
    receive: Callable[[], Awaitable[Any]],
    ask: Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]],
    way: str,
) -> None:
    """Make an ASGI request twice; the first one's response counts."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())

    def replay() -> Callable[[], Awaitable[Any]]:
        left = list(messages)

        async def again() -> Any:
            return left.pop(0) if left else {"type": "http.disconnect"}

        return again

    if way == TOGETHER:
        from asyncio import gather  # here, because few shops have a loop

        await gather(ask(replay()), ask(replay()))
    else:
        await ask(replay())
        await ask(replay())
