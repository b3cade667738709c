"""The gate of a server whose state another server may have: a standby answers its health only."""

from collections.abc import Callable
from typing import Final

from flask import Flask, Response, g, request

from payment_sandbox.projects.project import DROPPED
from payment_sandbox.version import __version__
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.error_bodies import TYPE_BY_STATUS, error_body

HEALTH: Final = "/health"
REFUSALS: Final = range(400, 500)
UNAVAILABLE: Final = 503
STANDBY: Final = "this server is a standby: another server has the state, or the database does not answer"

Place = Callable[[], object | None]
"""Returns the connection through which this server has the state; None at a standby."""


def guard(app: Flask, place: Place) -> None:
    """Refuse all calls while this server does not have the state.

    If memory was dropped during a call, a refusal may tell what memory lacks, so the call is to be repeated.
    """

    def admit() -> Response | None:
        g.place = place()
        if g.place is not None:
            return None
        if request.path.rstrip("/") == HEALTH:
            return json_answer({"status": "standby", "version": __version__}, UNAVAILABLE)
        return _answer(STANDBY)

    def check(response: Response) -> Response:
        is_refused = response.status_code in REFUSALS
        return _answer(DROPPED) if is_refused and g.get("place") is not place() else response

    app.before_request(admit)
    app.after_request(check)


def _answer(problem: str) -> Response:
    body = error_body(UNAVAILABLE, TYPE_BY_STATUS[UNAVAILABLE], problem)
    answer = json_answer(body, UNAVAILABLE)
    answer.headers["Retry-After"] = "1"
    return answer
