"""What follows a response: webhooks leave when it is on its way, or before it if the project says so."""

from flask import Response

from payment_sandbox.web.auth import project
from payment_sandbox.web.carried import exchange

BEFORE_RESPONSE = "before_response"


def hold_webhooks() -> None:
    """Hold back this request's webhooks until its response is on its way (SET-59)."""
    epoch = project().epoch
    exchange().held = epoch, epoch.outbox.hold()


def release_webhooks(response: Response) -> Response:
    """Let them go once the response is sent; before it, and answered, where the project says so (SET-60)."""
    carried = exchange()
    held, carried.held = carried.held, None
    if held is None:
        return response
    here, (epoch, key) = project(), held
    if here.settings.webhook_timing == BEFORE_RESPONSE:
        here.deliver_held(epoch, key)
    else:
        response.call_on_close(lambda: here.release(epoch, key))
    return response
