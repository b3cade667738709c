"""Sees the requests that a test makes to its shop, so that webhooks can wait for the shop's response.

An application is called by whatever test client the test uses, so its class is replaced by one whose
``__call__`` tells when a request begins and ends. Django's test clients do not call the application, so their
handlers get such a ``__call__``.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from inspect import iscoroutinefunction
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from payment_sandbox.loading import LOADING
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import body_of
from payment_sandbox.testing.shops.tracebacks import RUNNING

if TYPE_CHECKING:
    from payment_sandbox.projects.outbox import Held
    from payment_sandbox.projects.project import Project

POST: Final = "POST"

Pressed = Callable[[str, str], bool | None]
"""Asked for every form that the test submits: True submits it again at the same moment, False afterwards."""

_pressed: Final[list[Pressed]] = []  # the newest last


def set_pressed(pressed: Pressed | None) -> None:
    """Ask this one from now on; None: nobody."""
    _pressed.clear()
    if pressed is not None:
        _pressed.append(pressed)


def is_repeated(method: str, path: str) -> bool | None:
    """Whether a request of the test is made again at the same moment, or afterwards; None if it is not."""
    return _pressed[-1](method, path) if method == POST and _pressed else None


class Again:
    """A WSGI request that is made a second time, at the same moment or afterwards."""

    def __init__(self, environ: dict[str, Any], at_once: bool, ask: Callable[[dict[str, Any]], Any]) -> None:
        body = body_of(environ)
        environ["wsgi.input"] = BytesIO(body)
        copy = {**environ, "wsgi.input": BytesIO(body)}
        context = copy_context()

        def ask_again() -> None:
            with suppress(Exception):
                context.run(ask, copy)

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


async def asked_again(
    receive: Callable[[], Awaitable[Any]],
    ask: Callable[[Callable[[], Awaitable[Any]]], Awaitable[None]],
    at_once: bool,
) -> None:
    """Make an ASGI request twice; the first one's response counts."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())

    def replay() -> Callable[[], Awaitable[Any]]:
        remaining = list(messages)

        async def again() -> Any:
            return remaining.pop(0) if remaining else {"type": "http.disconnect"}

        return again

    if at_once:
        from asyncio import gather  # here, because few shops have a loop

        await gather(ask(replay()), ask(replay()))
    else:
        await ask(replay())
        await ask(replay())


class Kept(NamedTuple):
    """The webhooks that one call of the shop has caused."""

    project: "Project"
    held: "Held"


Deliver = Callable[[list[Kept]], None]


class ShopRequest:
    """A request to the shop that is being answered. What it causes is told to the shop when it has ended."""

    def __init__(self, method: str, path: str) -> None:
        self.method = method
        self.path = path
        self._kept: list[Kept] = []
        self._deliver: Deliver | None = None

    def keep(self, project: "Project", held: "Held", deliver: Deliver) -> None:
        """Keep back the webhooks that one of the shop's calls has caused; ``deliver`` delivers them."""
        self._kept.append(Kept(project, held))
        self._deliver = deliver

    @property
    def is_awaited(self) -> bool:
        """Whether webhooks wait for its end."""
        return bool(self._kept)

    def end(self) -> None:
        """Deliver the webhooks that waited, and return once they are answered."""
        kept, self._kept = self._kept, []
        if self._deliver is not None:
            self._deliver(kept)


_NOW: Final[ContextVar[ShopRequest | None]] = ContextVar("shop_request", default=None)


def current_request() -> ShopRequest | None:
    """The test's request to its shop during which this code runs."""
    return _NOW.get() if RUNNING.get() is None else None


@contextmanager
def _begun(method: str, path: str) -> Iterator[ShopRequest | None]:
    """A request begins; None if it is made by the shop itself, or is a webhook."""
    if RUNNING.get() is not None or _NOW.get() is not None:
        yield None
        return
    request = ShopRequest(method, path)
    token = _NOW.set(request)
    try:
        yield request
    finally:
        _NOW.reset(token)


def _is_outermost() -> bool:
    return RUNNING.get() is None and _NOW.get() is None


def _watching_wsgi(kind: type) -> dict[str, Any]:
    def answer(self: Any, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        called = kind.__call__
        with _begun(environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")) as request:
            try:
                pieces: Iterable[bytes] = called(self, environ, start_response)
                if request is not None and request.is_awaited:
                    pieces = _whole(pieces)
            except BaseException:
                _end(request)
                raise
        _end(request)
        return pieces

    def call(self: Any, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        pieces: Iterable[bytes] = pressed(
            environ, lambda asked, begin: answer(self, asked, begin), start_response
        )
        return pieces

    return {"__call__": call}


def pressed(
    environ: dict[str, Any], answer: Callable[[dict[str, Any], Any], Any], start_response: Any = None
) -> Any:
    """Answer a WSGI request; if a rehearsal says so, the same request is made once more."""
    at_once = is_repeated(environ["REQUEST_METHOD"], environ["PATH_INFO"]) if _is_outermost() else None
    if at_once is None:
        return answer(environ, start_response)
    again = Again(environ, at_once, lambda copy: answer(copy, _ignored))
    try:
        return answer(environ, start_response)
    finally:
        again.end()


def _ignored(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Callable[[bytes], None]:
    """Begin a response that nobody reads."""
    return lambda piece: None


def _whole(pieces: Iterable[bytes]) -> list[bytes]:
    """A whole response: webhooks come after it."""
    try:
        return list(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _end(request: ShopRequest | None) -> None:
    if request is not None and request.is_awaited:
        request.end()


async def _end_on_loop(request: ShopRequest | None) -> None:
    if request is not None and request.is_awaited:
        with LOADING:
            from payment_sandbox.testing.loops import run_blocking  # here, because few shops have a loop

        await run_blocking(request.end)


def _watching_asgi(kind: type) -> dict[str, Any]:
    async def answer(self: Any, scope: Any, receive: Any, send: Any) -> None:
        called = kind.__call__
        with _begun(scope["method"], scope["path"]) as request:
            try:
                await called(self, scope, receive, send)
            finally:
                await _end_on_loop(request)

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await kind.__call__(self, scope, receive, send)
            return
        at_once = is_repeated(scope["method"], scope["path"]) if _is_outermost() else None
        if at_once is None:
            await answer(self, scope, receive, send)
            return
        sends = iter((send,))

        async def ask(again: Any) -> None:
            await answer(self, dict(scope), again, next(sends, _sent_to_nobody))

        await asked_again(receive, ask, at_once)

    return {"__call__": call}


async def _sent_to_nobody(message: Any) -> None:
    """A response that nobody reads."""


class _Watched:
    """The applications that are watched, each with its own class and how many projects watch it."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._classes: dict[type, type] = {}  # by what they watch

    def begin(self, application: Any) -> None:
        """Watch an application; one whose class cannot be replaced, such as a function, goes unwatched."""
        if is_django(application):
            _DJANGO.begin()
            return
        with suppress(TypeError):  # not weakly referable, or its class is fixed
            count = self._counts.get(application, 0)
            if not count:
                application.__class__ = self._class_for(type(application))
            self._counts[application] = count + 1

    def end(self, application: Any) -> None:
        """Watch it no longer."""
        if is_django(application):
            _DJANGO.end()
            return
        with suppress(TypeError):
            count = self._counts.pop(application, 0)
            if count > 1:
                self._counts[application] = count - 1
            elif count:
                application.__class__ = type(application).__bases__[0]

    def _class_for(self, kind: type) -> type:
        if kind not in self._classes:
            watching = _watching_asgi if iscoroutinefunction(kind.__call__) else _watching_wsgi
            made = {**watching(kind), "__module__": kind.__module__, "__qualname__": kind.__qualname__}
            self._classes[kind] = type(kind.__name__, (kind,), {**made, "__doc__": kind.__doc__})
        return self._classes[kind]


class _Django:
    """Django's test clients, which call its handlers instead of the application."""

    def __init__(self) -> None:
        self._count = 0
        self._before: list[tuple[type, Any]] = []

    def begin(self) -> None:
        """See their requests."""
        self._count += 1
        if self._count > 1:
            return
        with LOADING:
            from django.test import client  # type: ignore[import-not-found]  # the shop has it

        for handler, seen in ((client.ClientHandler, _seen), (client.AsyncClientHandler, _seen_async)):
            self._before.append((handler, handler.__call__))
            handler.__call__ = seen(handler.__call__)

    def end(self) -> None:
        """See them no longer."""
        self._count -= 1
        while not self._count and self._before:
            handler, call = self._before.pop()
            handler.__call__ = call  # type: ignore[method-assign]


def _seen(called: Any) -> Any:
    def answer(self: Any, environ: dict[str, Any]) -> Any:
        with _begun(environ["REQUEST_METHOD"], environ["PATH_INFO"]) as request:
            try:
                response = called(self, environ)
            except BaseException:
                _end(request)
                raise
        _end(request)
        return response

    def call(self: Any, environ: dict[str, Any]) -> Any:
        return pressed(environ, lambda asked, begin: answer(self, asked))

    return call


def _seen_async(called: Any) -> Any:
    async def call(self: Any, scope: dict[str, Any]) -> Any:
        with _begun(scope["method"], scope["path"]) as request:
            response = await called(self, scope)
        await _end_on_loop(request)
        return response

    return call


def is_django(application: object) -> bool:
    """Whether an application is one of Django's handlers."""
    return type(application).__module__.startswith("django.")


_DJANGO: Final = _Django()
_WATCHED: Final = _Watched()


def watch(application: Any) -> None:
    """See the requests that the test makes to this application, until ``unwatch``."""
    _WATCHED.begin(application)


def unwatch(application: Any) -> None:
    """End a ``watch``."""
    _WATCHED.end(application)
