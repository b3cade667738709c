"""Tracks a test's requests to its shop, so that webhooks can wait for the shop's response.

Any test client may call the application, so its calls go through a wrapper, which marks the start and the end
of a request. The application object itself is never changed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final

from payment_sandbox.loading import load_module
from payment_sandbox.projects.outbox import HeldDeliveries
from payment_sandbox.projects.project import Project
from payment_sandbox.testing import loops
from payment_sandbox.testing.shops.submitting import (
    Environ,
    Receive,
    Scope,
    Send,
    answer_submission,
    answer_submission_on_loop,
    current_observer,
    read_whole,
)
from payment_sandbox.testing.shops.tracebacks import CURRENT_HANDLER

DeliverHeld = Callable[[list[tuple[Project, HeldDeliveries]]], None]


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


def is_shop_answering() -> bool:
    """Return whether the current code runs for a request to the shop."""
    return _CURRENT_REQUEST.get() is not None


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


def watch_wsgi(application: Any, read: Callable[[Any], Any] = read_whole) -> Any:
    """Wrap a WSGI application, so that its outermost request is tracked and can be varied."""

    def answer(environ: Environ, start_response: Any) -> Any:
        with _track() as request:
            try:
                response = application(environ, start_response)
                if request is not None and request.held:
                    response = read(response)  # read first, because webhooks follow the response
            except BaseException:
                _end(request)
                raise
        _end(request)
        return response

    def call(environ: Environ, start_response: Any) -> Any:
        observer = current_observer()
        if observer is None or not _is_outermost():
            return answer(environ, start_response)
        return answer_submission(observer, environ, answer, start_response)

    return call


def watch_asgi(application: Any) -> Any:
    """Wrap an ASGI application, so that its outermost HTTP request is tracked and can be varied."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        with _track() as request:
            try:
                await application(scope, receive, send)
            finally:
                await _end_on_loop(request)

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        observer = current_observer()
        if scope["type"] != "http":
            await application(scope, receive, send)
        elif observer is not None and _is_outermost():
            await answer_submission_on_loop(observer, scope, receive, send, answer)
        else:
            await answer(scope, receive, send)

    return call


def _end(request: ShopRequest | None) -> None:
    if request is not None and request.held:
        request.end()


async def _end_on_loop(request: ShopRequest | None) -> None:
    if request is not None and request.held:
        await loops.run_blocking(request.end)


def _watch_django(handler: Any) -> Any:
    """Wrap the handler of Django's test client, which returns a response object."""
    watched = watch_wsgi(lambda environ, start_response: handler(environ), lambda response: response)
    return lambda environ: watched(environ, None)


def _watch_async_django(handler: Any) -> Any:
    async def call(scope: Scope) -> Any:
        with _track() as request:
            response = await handler(scope)
        await _end_on_loop(request)
        return response

    return call


class _Hook:
    """A hook in a class: calls of its watched instances go through a wrapper; all, if none is named."""

    def __init__(self, kind: type, wrap: Callable[[Any], Any]) -> None:
        self.watched: list[Any] = []
        original = kind.__dict__["__call__"]

        def choose(instance: Any) -> Any:
            bound = partial(original, instance)
            is_watched = any(each is instance or each is ALL for each in self.watched)
            return wrap(bound) if is_watched else bound

        def call(instance: Any, *arguments: object, **options: object) -> Any:
            return choose(instance)(*arguments, **options)

        async def await_call(instance: Any, *arguments: object, **options: object) -> Any:
            return await choose(instance)(*arguments, **options)

        hook = await_call if iscoroutinefunction(original) else call  # test clients tell ASGI from WSGI by it
        setattr(kind, "__call__", wraps(original)(hook))  # noqa: B010 (mypy allows no assignment)
        self.undo = partial(setattr, kind, "__call__", original)


ALL: Final = object()
"""Stands for all instances of a class."""
_HOOKS: Final[dict[type, _Hook]] = {}


def _places(application: Any) -> list[tuple[type, Any, Callable[[Any], Any]]]:
    """Return the classes whose calls are the requests to an application, what to watch, and its wrapper.

    The application itself stays as it is: a test client of any kind calls its class. Django's test clients
    call handlers of their own instead.
    """
    if is_django(application):
        client = load_module("django.test.client")  # installed for the shop
        return [
            (client.ClientHandler, ALL, _watch_django),
            (client.AsyncClientHandler, ALL, _watch_async_django),
        ]
    kind = next(each for each in type(application).__mro__ if "__call__" in vars(each))
    return [(kind, application, watch_asgi if iscoroutinefunction(kind.__call__) else watch_wsgi)]


def is_django(application: object) -> bool:
    """Return whether an application is a Django handler."""
    return type(application).__module__.startswith("django.")


def watch(application: Any) -> None:
    """Watch the test's requests to this application, until ``unwatch``."""
    for kind, watched, wrap in _places(application):
        with suppress(TypeError):  # functions and other built-in kinds have no class of their own
            if kind not in _HOOKS:
                _HOOKS[kind] = _Hook(kind, wrap)
            _HOOKS[kind].watched.append(watched)


def unwatch(application: Any) -> None:
    """End a ``watch``."""
    for kind, watched, _ in _places(application):
        hook = _HOOKS.get(kind)
        if hook is None:
            continue
        del hook.watched[next(index for index, each in enumerate(hook.watched) if each is watched)]
        if not hook.watched:
            hook.undo()
            del _HOOKS[kind]
