"""The end of a call that may have caused webhooks: who sends them, and when."""

from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Final

from flask import Response

from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for

EARLY_SECONDS_MAX: Final = 0.4  # how long a response waits for its early webhooks in a rehearsal


def release_webhooks(call: Call, response: Response) -> Response:
    """Decide who sends the held webhooks (SET-60): the end of the shop's request, this call, or the courier.

    In a rehearsal, a handler may wait for a lock that the shop holds during this call. The response then
    comes first after all, and the end of the shop's request waits for the handler.
    """
    held = call.held
    if held is None:
        return response
    project = call.project
    try:
        is_due_now = held.precede_response and project.settings.webhook_timing == BEFORE_RESPONSE
        is_taken_over = not is_due_now and call.connection.take_over(project, held)
        if held.precede_response and is_taken_over:
            early = Thread(
                target=copy_context().run, args=(project.deliver_held, held), name="early webhooks"
            )
            early.start()
            early.join(EARLY_SECONDS_MAX)
        elif held.precede_response:
            project.deliver_held(held)
        elif not is_taken_over:
            response.call_on_close(partial(project.release, held))
    except Exception as error:
        project.release(held)
        return answer_for(call, error)
    return response
