"""The middleware of a rehearsal."""

from flask import Response

from payment_sandbox.projects.rehearsal import NO_REHEARSAL
from payment_sandbox.scenarios.effects import Stale, WebhooksFirst
from payment_sandbox.web.call import Call
from payment_sandbox.web.faces import GoOn


def rehearsed(call: Call, go_on: GoOn) -> Response:
    """Count a step of the rehearsal, let it choose a fault, and let it replace the order in the response."""
    project = call.project
    if call.is_by_test or project.epoch.rehearsal is NO_REHEARSAL:
        return go_on(call)
    if call.line.may_wait:
        call.begin_waiting()  # before the step is counted
        call.rehearsed = project.epoch.rehearsal.call(call.request.method, call.request.path)
        call.comes_first = call.rehearsed is not None and isinstance(call.rehearsed.effect, WebhooksFirst)
    response = go_on(call)
    noted = call.noted
    if noted.order_id is not None and not noted.is_lost and not response.is_streamed:
        body = response.get_data()
        is_stale = noted.fault is not None and isinstance(noted.fault.effect, Stale)
        response.set_data(project.epoch.rehearsal.answer(noted.order_id, body, is_stale=is_stale))
    return response
