"""The blueprint of the calls on one project."""

from functools import cache
from typing import Final

from flask import Blueprint, request

from payment_sandbox.forms import Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.web.after import release_webhooks
from payment_sandbox.web.auth import refuse_strangers, select_project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.routes import current_facts


class NothingForm(Form):
    """An empty object."""


NOTHING: Final = NothingForm()
WITH_BODY: Final = ("POST", "PUT", "PATCH", "DELETE")


@cache
def _made(form: type[Form]) -> Form:
    """One instance for all requests: what reads quickly is built for each."""
    return form()


def refuse_unknown() -> None:
    """Refuse query keys and bodies that the route does not accept.

    Raises:
        Invalid: lists all of them, with the closest known names.
    """
    facts = current_facts()
    if facts is None:
        return
    read(_made(facts.query) if facts.query is not None else NOTHING, request.args.to_dict())
    twice = [key for key, values in request.args.lists() if len(values) > 1]
    if twice:
        raise Invalid([Violation(key, "is given more than once") for key in twice])
    if facts.reads is None and request.method in WITH_BODY:
        read(NOTHING, json_body(empty_is={}))


BODY_ERRORS: Final = (400, 401, 413, 415)

control = Blueprint("control", __name__, url_prefix="/control")
control.before_request(refuse_strangers)
control.before_request(select_project)
control.before_request(refuse_unknown)
control.after_request(release_webhooks)
