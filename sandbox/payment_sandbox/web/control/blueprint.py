"""The blueprint of the routes for one project."""

from functools import cache
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.forms import NOTHING, Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.web.auth import only_from_here, only_with_key
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.faces import Face, GoOn, held_webhooks, let_others_run

WITH_BODY: Final = ("POST", "PUT", "PATCH", "DELETE")


@cache
def _cached_form(form: type[Form]) -> Form:
    """Return one instance for all requests, because building a fast reader takes long."""
    return form()


def only_known(call: Call, go_on: GoOn) -> Response:
    """Refuse query keys and bodies that the route does not accept.

    Raises:
        Invalid: lists all of them, with suggestions.
    """
    assert call.routed is not None, "a route matches"
    facts = call.routed.facts
    read(_cached_form(facts.query) if facts.query is not None else NOTHING, call.request.args.to_dict())
    twice = [key for key, values in call.request.args.lists() if len(values) > 1]
    if twice:
        raise Invalid([Violation(key, "is given more than once") for key in twice])
    if facts.reads is None and call.request.method in WITH_BODY:
        read(NOTHING, json_body(call, empty_is={}))
    return go_on(call)


BODY_ERRORS: Final = (400, 401, 413, 415)

control = Blueprint("control", __name__, url_prefix="/control")
MIDDLEWARES: Final = (let_others_run, only_from_here, only_with_key, only_known, held_webhooks)
CONTROL: Final = Face(control, MIDDLEWARES, answer_for)
