"""Faces: parts of the application with common middlewares and a common error format."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from werkzeug.wrappers import Response

from payment_sandbox.projects.queued_deliveries import HeldDeliveries
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import RouteGroup

Before = Callable[[Call], Response | None]
"""Runs before the view; a response ends the call without the view."""

After = Callable[[Call, Response], Response]
"""Runs after the view, and returns its response or another one."""

OnError = Callable[[Call, Exception], Response]
"""Builds the response to a refused or failed call."""


class Middleware(NamedTuple):
    """One behaviour around the views of a face: what it does before them, after them, or both."""

    before: Before | None = None
    after: After | None = None


class Face:
    """A group of routes, with the middlewares of their calls."""

    def __init__(self, group: RouteGroup, middlewares: tuple[Middleware, ...], on_error: OnError) -> None:
        """``middlewares`` are ordered from the outermost to the innermost."""
        self.group: Final = group
        self._middlewares = middlewares
        self._on_error = on_error

    def answer(self, call: Call) -> Response:
        """Answer a call: what the middlewares do before the view, the view, and what they do after it.

        A response or an exception of a middleware skips the view and the inner middlewares. An exception
        becomes a response at once, so that the outer middlewares always get one.
        """
        assert call.route is not None, "a route must match"
        begun: list[After] = []
        try:
            for before, after in self._middlewares:
                early = before(call) if before is not None else None
                if early is not None:
                    response = early
                    break
                if after is not None:
                    begun.append(after)
            else:
                response = call.route.view(call, **call.values)
        except Exception as error:
            response = self._on_error(call, error)
        for after in reversed(begun):
            try:
                response = after(call, response)
            except Exception as error:
                response = self._on_error(call, error)
        return response

    def admit(self, call: Call) -> Response | None:
        """Return the refusal of a call before its large body arrives; None if the call is admitted."""
        assert call.route is not None, "a route must match"
        try:
            if call.route.facts.admit is not None:
                call.project = call.route.facts.admit(call)
        except Exception as error:
            return self._on_error(call, error)
        return None


def release_webhooks(call: Call, response: Response) -> Response:
    """Decide who sends the held webhooks (SET-60): the end of the shop's request, this call, or the courier.

    In a rehearsal, a handler may wait for a lock that the shop holds during this call. The end of the shop's
    request then waits for the handler.
    """
    held = call.held
    if held is None:
        return response
    try:
        _release(call, held, response)
    except Exception:
        call.project.release(held)
        raise
    return response


def _release(call: Call, held: HeldDeliveries, response: Response) -> None:
    project = call.project
    is_due_now = held.precede_response and project.settings.webhook_timing == BEFORE_RESPONSE
    is_taken_over = not is_due_now and call.connection.take_over(project, held)
    if held.precede_response and is_taken_over:
        project.epoch.rehearsal.deliver_first(partial(project.deliver_held, held))
    elif held.precede_response:
        project.deliver_held(held)
    elif not is_taken_over:
        response.call_on_close(partial(project.release, held))


RELEASE_WEBHOOKS: Final = Middleware(after=release_webhooks)


def with_headers(headers: Mapping[str, str]) -> Middleware:
    """Set default headers."""

    def add_headers(call: Call, response: Response) -> Response:
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    return Middleware(after=add_headers)
