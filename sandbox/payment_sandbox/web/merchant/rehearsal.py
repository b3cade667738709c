"""The middleware of a rehearsal."""

from flask import Response

from payment_sandbox.projects.rehearsal import NO_REHEARSAL
from payment_sandbox.scenarios.effects import Stale, WebhooksFirst
from payment_sandbox.web.call import Call
from payment_sandbox.web.faces import CallNext


def rehearse_call(call: Call, call_next: CallNext) -> Response:
    """Count a step of the rehearsal, which may choose a fault and replace the order in the response."""
    project = call.project
    if call.is_from_test or project.epoch.rehearsal is NO_REHEARSAL:
        return call_next(call)
    if call.may_wait:
        _choose_fault(call)
    response = call_next(call)
    notes = call.notes
    if notes.order_id is not None and not notes.is_lost and not response.is_streamed:
        body = response.get_data()
        is_stale = notes.fault is not None and isinstance(notes.fault.effect, Stale)
        method = call.request.method
        response.set_data(project.epoch.rehearsal.answer(method, notes.order_id, body, is_stale=is_stale))
    return response


def _choose_fault(call: Call) -> None:
    call.begin_waiting()  # before the step is counted
    fault = call.project.epoch.rehearsal.call(call.request.method, call.request.path)
    if fault is not None and call.held is not None and isinstance(fault.effect, WebhooksFirst):
        call.held.precede_response = True
    call.rehearsed_fault = fault
