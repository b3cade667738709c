"""Faces: parts of the application with the same middlewares, and errors that look the same."""

from collections.abc import Callable, Mapping
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.web.call import Call

GoOn = Callable[[Call], Response]
"""Goes on with a call: the next middleware, or the view."""

Middleware = Callable[[Call, GoOn], Response]
"""One behaviour: what it does before the call goes on, and after."""

OnError = Callable[[Call, Exception], Response]
"""Makes the response to a call that was refused, or failed."""


class Face:
    """The routes of a blueprint, and what happens around each of their calls.

    Whatever a middleware or a view raises becomes a response at once, so that the middlewares around it see
    one in any case.
    """

    def __init__(self, blueprint: Blueprint, middlewares: tuple[Middleware, ...], on_error: OnError) -> None:
        """``middlewares`` are in order: the first one is around all others."""
        self.blueprint: Final = blueprint
        self.answer = _guarded(_view, on_error)
        for middleware in reversed(middlewares):
            self.answer = _guarded(middleware, on_error, self.answer)


def _view(call: Call) -> Response:
    assert call.routed is not None, "a route matches"
    return call.routed.view(call, **call.values)


def _guarded(step: Callable[..., Response], on_error: OnError, *given: GoOn) -> GoOn:
    def answer(call: Call) -> Response:
        try:
            return step(call, *given)
        except Exception as error:
            return on_error(call, error)

    return answer


def let_others_run(call: Call, go_on: GoOn) -> Response:
    """Let other calls run while this one waits, if its route does."""
    assert call.routed is not None, "a route matches"
    if call.routed.facts.waits:
        call.begin_waiting()
    return go_on(call)


def held_webhooks(call: Call, go_on: GoOn) -> Response:
    """Release the webhooks that a call holds back."""
    try:
        return call.release_webhooks(go_on(call))
    except BaseException:  # there is no response whose end would release them
        if call.owner is not None and call.held is not None:
            call.owner.release(call.held)
        raise


def with_headers(headers: Mapping[str, str]) -> Middleware:
    """Set headers that are not set otherwise."""

    def middleware(call: Call, go_on: GoOn) -> Response:
        response = go_on(call)
        for name, value in headers.items():
            response.headers.setdefault(name, value)
        return response

    return middleware
