"""The blueprint of the routes for one project."""

from functools import cache
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.forms import NOTHING, Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.web.auth import only_with_key, same_site_only
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.faces import CallNext, Face, held_webhooks, let_others_run

WITH_BODY: Final = ("POST", "PUT", "PATCH", "DELETE")


@cache
def _cached_form(form: type[Form]) -> Form:
    """Return one form for all requests, because building a form is slow."""
    return form()


def refuse_unknown_keys(call: Call, call_next: CallNext) -> Response:
    """Refuse query keys and bodies that the route does not accept.

    Raises:
        Invalid: lists all of them, with suggestions.
    """
    assert call.routed is not None, "a route must match"
    facts = call.routed.facts
    read(_cached_form(facts.query) if facts.query is not None else NOTHING, call.request.args.to_dict())
    twice = [key for key, values in call.request.args.lists() if len(values) > 1]
    if twice:
        raise Invalid([Violation(key, "is given more than once") for key in twice])
    if facts.reads is None and call.request.method in WITH_BODY:
        read(NOTHING, json_body(call, empty_is={}))
    return call_next(call)


BODY_ERRORS: Final = (400, 401, 413, 415)

control = Blueprint("control", __name__, url_prefix="/control")
MIDDLEWARES: Final = (let_others_run, same_site_only, only_with_key, refuse_unknown_keys, held_webhooks)
CONTROL: Final = Face(control, MIDDLEWARES, answer_for)
