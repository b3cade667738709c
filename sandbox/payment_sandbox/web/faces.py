"""Faces: parts of the application with common middlewares and a common error format."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.projects.outbox import HeldDeliveries
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.call import Call

CallNext = Callable[[Call], Response]
"""Continues a call: the next middleware, or the view."""

Middleware = Callable[[Call, CallNext], Response]
"""Wraps a call with behaviour before and after it."""

OnError = Callable[[Call, Exception], Response]
"""Builds the response to a refused or failed call."""


class Face:
    """The routes of a blueprint, with the middlewares of their calls.

    An exception in a middleware or a view is converted to a response at once, so that outer middlewares
    always get a response.
    """

    def __init__(self, blueprint: Blueprint, middlewares: tuple[Middleware, ...], on_error: OnError) -> None:
        """``middlewares`` are ordered from the outermost to the innermost."""
        self.blueprint: Final = blueprint
        self.answer = _guard(_call_view, on_error)
        for middleware in reversed(middlewares):
            self.answer = _guard(middleware, on_error, self.answer)


def _call_view(call: Call) -> Response:
    assert call.route is not None, "a route must match"
    return call.route.view(call, **call.values)


def _guard(step: Callable[..., Response], on_error: OnError, *inner: CallNext) -> CallNext:
    def answer(call: Call) -> Response:
        try:
            return step(call, *inner)
        except Exception as error:
            return on_error(call, error)

    return answer


def let_others_run(call: Call, call_next: CallNext) -> Response:
    """Let other calls run while this call waits, if its route may wait."""
    assert call.route is not None, "a route must match"
    if call.route.facts.waits:
        call.begin_waiting()
    return call_next(call)


def release_held_webhooks(call: Call, call_next: CallNext) -> Response:
    """Send the held webhooks of a call after its response, or before it (SET-60)."""
    try:
        response = call_next(call)
        if call.held is not None:
            _release(call, call.held, response)
    except BaseException:  # without a response, nothing else would release the webhooks
        if call.held is not None:
            call.project.release(call.held)
        raise
    return response


def _release(call: Call, held: HeldDeliveries, response: Response) -> None:
    """Decide who sends the held webhooks: the end of the shop's request, this call, or the courier after it.

    In a rehearsal, a handler may wait for a lock that the shop holds during this call. The end of the shop's
    request then waits for the handler.
    """
    project = call.project
    is_due_now = held.precede_response and project.settings.webhook_timing == BEFORE_RESPONSE
    is_taken_over = not is_due_now and call.connection.take_over(project, held)
    if held.precede_response and is_taken_over:
        project.epoch.rehearsal.deliver_first(partial(project.deliver_held, held))
    elif held.precede_response:
        project.deliver_held(held)
    elif not is_taken_over:
        response.call_on_close(partial(project.release, held))


def with_headers(headers: Mapping[str, str]) -> Middleware:
    """Set default headers."""

    def middleware(call: Call, call_next: CallNext) -> Response:
        response = call_next(call)
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    return middleware
