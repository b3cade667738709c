"""The steps of a rehearsal in a call: the fault that it chooses, and the order in the response."""

from flask import Response

from payment_sandbox.projects.rehearsal_hooks import NO_REHEARSAL
from payment_sandbox.scenarios.effects import Fault, Stale, WebhooksFirst
from payment_sandbox.web.call import Call
from payment_sandbox.web.faces import CallNext


def rehearse_call(call: Call, call_next: CallNext) -> Response:
    """Let a rehearsal replace the order in the response."""
    response, notes, rehearsal = call_next(call), call.notes, call.project.epoch.rehearsal
    if call.is_from_test or rehearsal is NO_REHEARSAL:
        return response
    if notes.order_id is not None and not notes.is_lost and not response.is_streamed:
        body = response.get_data()
        is_stale = notes.fault is not None and isinstance(notes.fault.effect, Stale)
        method = call.request.method
        response.set_data(rehearsal.answer(method, notes.order_id, body, is_stale=is_stale))
    return response


def choose_fault(call: Call) -> Fault | None:
    """Count a step of the rehearsal, which may choose a fault, or webhooks before the response."""
    rehearsal = call.project.epoch.rehearsal
    if rehearsal is NO_REHEARSAL or not call.may_wait:
        return None
    call.begin_waiting()  # before the step is counted
    fault = rehearsal.call(call.request.method, call.request.path)
    if fault is not None and call.held is not None and isinstance(fault.effect, WebhooksFirst):
        call.held.precede_response = True
    return fault
