"""The face of the merchant API, with its middlewares in order."""

from typing import Final

from flask import Response

from payment_sandbox.projects.project import Project
from payment_sandbox.web.auth import find_project, refuse_foreign_host, require_project
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for, refusal_answer, report_refused
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import CallNext, Face, release_held_webhooks
from payment_sandbox.web.idempotency import ensure_idempotency
from payment_sandbox.web.merchant.explanation import explain, explain_call
from payment_sandbox.web.merchant.fault_effects import apply_fault
from payment_sandbox.web.merchant.journal_entry import add_entry, journal_call
from payment_sandbox.web.merchant.reading import note_unknown_query
from payment_sandbox.web.merchant.rehearsed_call import rehearse_call
from payment_sandbox.web.placing import catch_up_call
from payment_sandbox.web.routes import FactsBlueprint

BODY_ERRORS: Final = (400, 401, 413, 415)
CHANGE_ERRORS: Final = (400, 401, 404, 409, 412, 413, 415)

api = FactsBlueprint("api", __name__, url_prefix="/v1")


def admit_call(call: Call, call_next: CallNext) -> Response:
    """Find the project and run its due events; explain any refusal."""
    try:
        refuse_foreign_host(call)
        project = require_project(call)
        catch_up_call(call, project)
    except Exception as error:
        return _explain_refusal(call, answer_for(call, error), call.owner)
    call.real_at = project.services.real.wall_now()
    return call_next(call)


def _explain_refusal(call: Call, response: Response, project: Project | None) -> Response:
    """Explain a refusal, and journal it if the project is known."""
    explain(call, response, project)
    if project is not None:
        add_entry(call, project, response)
    return response


def hold_webhooks(call: Call, call_next: CallNext) -> Response:
    """Hold the webhooks of a call that may change state, until its response."""
    if call.request.method != "GET":
        call.hold_webhooks()
    return release_held_webhooks(call, call_next)


MIDDLEWARES: Final = (
    admit_call,
    hold_webhooks,
    journal_call,
    explain_call,
    ensure_idempotency,
    rehearse_call,
    note_unknown_query,
    apply_fault,
)
FACE: Final = Face(api, MIDDLEWARES, answer_for)


def answer_unrouted(call: Call, response: Response) -> Response:
    """Explain a call that matches no route; journal it if the API key is known.

    Returns:
        The response, or the refusal of a foreign host.
    """
    try:
        refuse_foreign_host(call)
    except RequestRefused as refused:
        return _explain_refusal(call, refusal_answer(call, refused), None)
    project = find_project(call)
    if project is None:
        report_refused(call, response.status_code, response.get_json()["error"]["value"])
    return _explain_refusal(call, response, project)
