"""Sees the requests that a test makes to its shop, so that webhooks can wait for the shop's response.

An application is called by whatever test client the test uses, so its class is replaced by one whose
``__call__`` tells when a request begins and ends. Django's test clients do not call the application, so their
handlers get such a ``__call__``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from payment_sandbox.loading import LOADING
from payment_sandbox.testing.shops.pressing import pressed, pressed_on_loop
from payment_sandbox.testing.shops.tracebacks import RUNNING

if TYPE_CHECKING:
    from payment_sandbox.projects.outbox import Held
    from payment_sandbox.projects.project import Project


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
        if not _is_outermost():
            return answer(self, environ, start_response)
        pieces: Iterable[bytes] = pressed(
            environ, lambda asked, begin: answer(self, asked, begin), start_response
        )
        return pieces

    return {"__call__": call}


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
        if not _is_outermost():
            await answer(self, scope, receive, send)
            return
        await pressed_on_loop(scope, receive, send, partial(answer, self))

    return {"__call__": call}


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
        if not _is_outermost():
            return answer(self, environ)
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
