"""The health of the server."""

from flask import Response

from payment_sandbox.version import __version__
from payment_sandbox.web.answers.records import Health
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_blueprint import WITHOUT_KEY, control
from payment_sandbox.web.routes import route


@route(control, "GET", "/health/", group=WITHOUT_KEY, answers=Health, errors=())
def get_health(call: Call) -> Response:
    """Check that the server has started and is ready (CTL-05); a standby answers 503."""
    return json_answer({"status": "ok", "version": __version__})
