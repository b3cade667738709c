"""The route for the health of the server, which loads without the control API."""

from typing import Final

from werkzeug.wrappers import Response

from payment_sandbox.version import __version__
from payment_sandbox.web.answers.plain_records import Health
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.faces import Face
from payment_sandbox.web.routes import RouteGroup, route

health = RouteGroup("health")


@route(health, "GET", "/health/", answers=Health, errors=())
def get_health(call: Call) -> Response:
    """Check that the server has started and is ready (CTL-05)."""
    return json_answer({"status": "ok", "version": __version__})


HEALTH_FACE: Final = Face(health, (), answer_for)
