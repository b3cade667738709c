"""What follows a response: webhooks leave when it is on its way, or before it if the project says so."""

from flask import Response, g

from payment_sandbox.web.auth import project

BEFORE_RESPONSE = "before_response"


def hold_webhooks() -> None:
    """Keep this request's webhooks back until its response is on its way (SET-59)."""
    outbox = project().outbox
    g.held = outbox, outbox.hold()


def release_webhooks(response: Response) -> Response:
    """Let them go once the response is sent; before it, and answered, where the project says so (SET-60)."""
    held = g.pop("held", None)
    if held is None:
        return response
    outbox, key = held
    if project().settings.webhook_timing == BEFORE_RESPONSE:
        outbox.release_now(key)
    else:
        response.call_on_close(lambda: outbox.release(key))
    return response
