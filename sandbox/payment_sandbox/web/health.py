"""Routes for the health and the metrics of the server, which load without the control API."""

from typing import Final

from werkzeug.wrappers import Response

from payment_sandbox.extensions import COMPANY_DISTRIBUTION, METRICS_GROUP, NotInstalled
from payment_sandbox.extensions import load as load_extension
from payment_sandbox.version import __version__
from payment_sandbox.web.answers.plain_records import Health
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import Face
from payment_sandbox.web.routes import RouteGroup, route
from payment_sandbox.web.site import OK
from payment_sandbox.web.statistics import Statistics

health = RouteGroup("health")


@route(health, "GET", "/health/", answers=Health, errors=())
def get_health(call: Call) -> Response:
    """Check that the server has started and is ready (CTL-05)."""
    status = call.site.status()
    return json_answer({"status": status, "version": __version__}, 200 if status == OK else 503)


@route(health, "GET", "/metrics", media_type="text/plain", errors=(501,), slow=True)
def get_metrics(call: Call) -> Response:
    """Get the server's metrics since its start, in the text format of Prometheus."""
    server_context = call.site.server_context
    commit_count = server_context.shared.commit_count if server_context.shared is not None else 0
    try:
        metrics = load_extension(METRICS_GROUP, "prometheus", COMPANY_DISTRIBUTION, "/metrics")
    except NotInstalled as missing:
        raise RequestRefused(501, str(missing)) from None
    text = metrics(server_context.statistics or Statistics(), call.site.registry, commit_count)
    return Response(text, mimetype="text/plain")


HEALTH_FACE: Final = Face(health, (), answer_for)
