"""When webhooks are sent: after the response, or before it if the project's settings say so."""

from flask import Response

from payment_sandbox.web.auth import project
from payment_sandbox.web.carried import exchange

BEFORE_RESPONSE = "before_response"


def hold_webhooks() -> None:
    """Hold back this request's webhooks until its response has been sent (SET-59)."""
    here = exchange()
    assert here.project is not None, "require_project has not run"
    epoch = here.project.epoch
    here.held = epoch, epoch.outbox.hold()


def release_webhooks(response: Response) -> Response:
    """Send the held webhooks after the response, or deliver them before it (SET-60)."""
    state = exchange()
    held, state.held = state.held, None
    if held is None:
        return response
    here, (epoch, key) = project(), held
    if here.settings.webhook_timing == BEFORE_RESPONSE:
        here.deliver_held(epoch, key)
    else:
        response.call_on_close(lambda: here.release(epoch, key))
    return response
