"""The group of the routes for one project."""

from functools import cache
from typing import Final

from payment_sandbox.forms import NOTHING, Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.web.auth import refuse_cross_site, require_project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.faces import RELEASE_WEBHOOKS, Face, Middleware
from payment_sandbox.web.routes import RouteGroup

METHODS_WITH_BODY: Final = ("POST", "PUT", "PATCH", "DELETE")


@cache
def _cached_form(form: type[Form]) -> Form:
    """Return one form for all requests, because building a form is slow."""
    return form()


def read_query(call: Call) -> None:
    """Read the query; refuse unknown or repeated keys, and a body that the route does not accept.

    Raises:
        Invalid: lists all unknown keys, with suggestions.
    """
    assert call.route is not None, "a route must match"
    facts = call.route.facts
    form = _cached_form(facts.query) if facts.query is not None else NOTHING
    call.query = read(form, call.request.args.to_dict())
    duplicates = [key for key, values in call.request.args.lists() if len(values) > 1]
    if duplicates:
        raise Invalid([Violation(key, "is given more than once") for key in duplicates])
    if facts.reads is None and call.request.method in METHODS_WITH_BODY:
        read(NOTHING, json_body(call, empty_is={}))


def admit_snapshot(call: Call) -> Project:
    """Find the project of a call with a large body.

    Raises:
        RequestRefused: 401 or 403.
    """
    refuse_cross_site(call)
    require_project(call)
    return call.project


BODY_ERRORS: Final = (400, 401, 413, 415)

control = RouteGroup("control", "/control")
MIDDLEWARES: Final = (
    Middleware(refuse_cross_site),
    Middleware(require_project),
    Middleware(read_query),
    RELEASE_WEBHOOKS,
)
CONTROL: Final = Face(control, MIDDLEWARES, answer_for)
