"""Refuses input that a control call would ignore: unknown query keys and unexpected bodies."""

from functools import cache
from typing import Final

from flask import request

from payment_sandbox.forms import Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
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
