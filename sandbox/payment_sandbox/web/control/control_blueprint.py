"""The blueprint of the control API: who may call it, and what happens before and after its views."""

from functools import cache
from hmac import compare_digest
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.forms import NOTHING, Form, read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.web.auth import find_damaged, is_from_here, refuse_cross_site, require_project
from payment_sandbox.web.bodies import json_body
from payment_sandbox.web.call import Call, current_call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.releasing import release_webhooks

MISSING_TOKEN: Final = (
    "this call needs the server's control token: send 'Authorization: Bearer TOKEN'; "
    "clients and test suites read it from SANDBOX_CONTROL_TOKEN"
)
WRONG_TOKEN: Final = (
    "the control token is wrong: use that of serve --control-token; "
    "clients and test suites read it from SANDBOX_CONTROL_TOKEN"
)
ONLY_FROM_HERE: Final = (
    "this server has no control token, so this call is refused from other machines; "
    "set one: serve --control-token, or create_app(control_token=...)"
)
TOO_MANY_GUESSES: Final = "too many attempts with a wrong control token or key came from your address"
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
    assert call.facts is not None, "a route must match"
    facts = call.facts
    form = _cached_form(facts.query) if facts.query is not None else NOTHING
    call.query = read(form, call.request.args.to_dict())
    duplicates = [key for key, values in call.request.args.lists() if len(values) > 1]
    if duplicates:
        raise Invalid([Violation(key, "is given more than once") for key in duplicates])
    if facts.reads is None and call.request.method in METHODS_WITH_BODY:
        read(NOTHING, json_body(call, empty_is={}))


def require_control_token(call: Call) -> None:
    """Require the control token; without one, the client must be on this machine.

    Raises:
        RequestRefused: 401 if it is missing or wrong, 429 after too many guesses from the address.
    """
    token, failures = call.site.control_token, call.site.sign_in_failures
    if token is None:
        if not is_from_here(call):
            raise RequestRefused(401, ONLY_FROM_HERE)
        return
    scheme, _, sent = call.request.headers.get("Authorization", "").partition(" ")
    is_bearer, address = scheme.lower() == "bearer", call.request.remote_addr or ""  # in any letter case
    if is_bearer and (wait_seconds := failures.admit(address)):
        raise RequestRefused(429, TOO_MANY_GUESSES, {"Retry-After": str(wait_seconds)})
    if not is_bearer or not compare_digest(sent.strip().encode(), token.encode()):
        challenge = {"WWW-Authenticate": 'Bearer realm="payment orders sandbox control"'}
        raise RequestRefused(401, WRONG_TOKEN if is_bearer and sent.strip() else MISSING_TOKEN, challenge)
    failures.forgive(address)


BODY_ERRORS: Final = (400, 401, 413, 415)
DELETES_PROJECT: Final = ("DELETE", "/control/project/")
"""The only call that a damaged project admits."""
WITHOUT_KEY: Final = "health"
WITH_TOKEN: Final = "projects"
"""The group of calls to the whole server; all other groups need the key of a project."""

control = Blueprint("control", __name__)


@control.before_request
def admit_call() -> None:
    """Admit a call by the group of its route, and read its query.

    Raises:
        RequestRefused: 403, 401 or 429.
        Invalid: lists all problems of the query.
    """
    call = current_call()
    assert call.facts is not None, "a route must match"
    if call.facts.group == WITHOUT_KEY:
        return
    refuse_cross_site(call)
    if call.facts.group == WITH_TOKEN:
        require_control_token(call)
    elif (call.request.method, call.request.path) != DELETES_PROJECT or find_damaged(call) is None:
        require_project(call)
    read_query(call)


@control.after_request
def finish_call(response: Response) -> Response:
    """Release the webhooks of an action."""
    return release_webhooks(current_call(), response)


@control.errorhandler(Exception)
def answer_error(error: Exception) -> Response:
    """Answer a refused or failed call."""
    return answer_for(current_call(), error)
