"""Tracks a test's requests to its shop, so that webhooks can wait for the shop's response.

Any test client may call the application, so the application's class is replaced by a subclass whose
``__call__`` marks the start and the end of a request. Django's test clients do not call the application, so
their handlers get a similar ``__call__``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from payment_sandbox.loading import lazy, load_module
from payment_sandbox.testing.shops.submitting import answer_submission, answer_submission_on_loop, read_whole
from payment_sandbox.testing.shops.tracebacks import CURRENT_HANDLER

if TYPE_CHECKING:
    from payment_sandbox.projects.outbox import HeldDeliveries
    from payment_sandbox.projects.project import Project
    from payment_sandbox.testing import loops
else:
    loops = lazy("payment_sandbox.testing.loops")


DeliverHeld = Callable[[list[tuple["Project", "HeldDeliveries"]]], None]


class ShopRequest:
    """A request to the shop in progress, which holds the webhooks of the shop's calls until its end."""

    def __init__(self) -> None:
        self.held: list[tuple[Project, HeldDeliveries]] = []
        self.deliver: DeliverHeld | None = None

    def end(self) -> None:
        """Deliver the held webhooks, and return once they are answered."""
        held, self.held = self.held, []
        if self.deliver is not None:
            self.deliver(held)


_CURRENT_REQUEST: Final[ContextVar[ShopRequest | None]] = ContextVar("shop_request", default=None)


def current_request() -> ShopRequest | None:
    """Return the test's request that its shop is handling; None if it is handling none."""
    return _CURRENT_REQUEST.get() if CURRENT_HANDLER.get() is None else None


def _is_outermost() -> bool:
    return CURRENT_HANDLER.get() is None and _CURRENT_REQUEST.get() is None


@contextmanager
def _track() -> Iterator[ShopRequest | None]:
    """Track a request in the context; yield None for webhooks and the shop's own requests."""
    if not _is_outermost():
        yield None
        return
    request = ShopRequest()
    token = _CURRENT_REQUEST.set(request)
    try:
        yield request
    finally:
        _CURRENT_REQUEST.reset(token)


def _wsgi_members(kind: type) -> dict[str, Any]:
    def answer(self: Any, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        original_call = kind.__call__
        with _track() as request:
            try:
                pieces: Iterable[bytes] = original_call(self, environ, start_response)
                if request is not None and request.held:
                    pieces = read_whole(pieces)  # read first, because webhooks follow the response
            except BaseException:
                _end(request)
                raise
        _end(request)
        return pieces

    def call(self: Any, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not _is_outermost():
            return answer(self, environ, start_response)
        pieces: Iterable[bytes] = answer_submission(
            environ, lambda sent, begin: answer(self, sent, begin), start_response
        )
        return pieces

    return {"__call__": call}


def _end(request: ShopRequest | None) -> None:
    if request is not None and request.held:
        request.end()


async def _end_on_loop(request: ShopRequest | None) -> None:
    if request is not None and request.held:
        await loops.run_blocking(request.end)


def _asgi_members(kind: type) -> dict[str, Any]:
    async def answer(self: Any, scope: Any, receive: Any, send: Any) -> None:
        original_call = kind.__call__
        with _track() as request:
            try:
                await original_call(self, scope, receive, send)
            finally:
                await _end_on_loop(request)

    async def call(self: Any, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await kind.__call__(self, scope, receive, send)
            return
        if not _is_outermost():
            await answer(self, scope, receive, send)
            return
        await answer_submission_on_loop(scope, receive, send, partial(answer, self))

    return {"__call__": call}


class _WatchedApplications:
    """The watched applications, each with its own class and a count of watching projects."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._classes: dict[type, type] = {}  # subclasses by original class

    def begin(self, application: Any) -> None:
        """Watch an application; ignore applications whose class cannot be replaced, such as functions."""
        if is_django(application):
            _DJANGO_HOOKS.begin()
            return
        with suppress(TypeError):  # some objects support neither weak references nor a change of class
            count = self._counts.get(application, 0)
            if not count:
                application.__class__ = self._class_for(type(application))
            self._counts[application] = count + 1

    def end(self, application: Any) -> None:
        """Stop watching an application for one project."""
        if is_django(application):
            _DJANGO_HOOKS.end()
            return
        with suppress(TypeError):
            count = self._counts.pop(application, 0)
            if count > 1:
                self._counts[application] = count - 1
            elif count:
                application.__class__ = type(application).__bases__[0]

    def _class_for(self, kind: type) -> type:
        if kind not in self._classes:
            watching = _asgi_members if iscoroutinefunction(kind.__call__) else _wsgi_members
            names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
            members = {**watching(kind), **names, "__doc__": kind.__doc__}
            self._classes[kind] = type(kind.__name__, (kind,), members)
        return self._classes[kind]


class _DjangoHooks:
    """Hooks in Django's test clients, which call their handlers instead of the application."""

    def __init__(self) -> None:
        self._count = 0
        self._before: list[tuple[type, Any]] = []

    def begin(self) -> None:
        """Watch the requests from Django's test clients."""
        self._count += 1
        if self._count > 1:
            return
        client = load_module("django.test.client")  # installed for the shop
        hooks = (client.ClientHandler, _wrap_handler), (client.AsyncClientHandler, _wrap_async_handler)
        for handler, watched in hooks:
            self._before.append((handler, handler.__call__))
            handler.__call__ = watched(handler.__call__)

    def end(self) -> None:
        """Stop watching the test clients for one project."""
        self._count -= 1
        while not self._count and self._before:
            handler, call = self._before.pop()
            handler.__call__ = call  # type: ignore[method-assign]


def _wrap_handler(original_call: Any) -> Any:
    def answer(self: Any, environ: dict[str, Any]) -> Any:
        with _track() as request:
            try:
                response = original_call(self, environ)
            except BaseException:
                _end(request)
                raise
        _end(request)
        return response

    def call(self: Any, environ: dict[str, Any]) -> Any:
        if not _is_outermost():
            return answer(self, environ)
        return answer_submission(environ, lambda sent, begin: answer(self, sent))

    return call


def _wrap_async_handler(original_call: Any) -> Any:
    async def call(self: Any, scope: dict[str, Any]) -> Any:
        with _track() as request:
            response = await original_call(self, scope)
        await _end_on_loop(request)
        return response

    return call


def is_django(application: object) -> bool:
    """Return whether an application is a Django handler."""
    return type(application).__module__.startswith("django.")


_DJANGO_HOOKS: Final = _DjangoHooks()
_WATCHED_APPLICATIONS: Final = _WatchedApplications()


def watch(application: Any) -> None:
    """Watch the test's requests to this application, until ``unwatch``."""
    _WATCHED_APPLICATIONS.begin(application)


def unwatch(application: Any) -> None:
    """End a ``watch``."""
    _WATCHED_APPLICATIONS.end(application)
