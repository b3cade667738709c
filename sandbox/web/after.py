"""What follows a response: webhooks leave when it is on its way, or before it if the project says so."""

from flask import Response, g

from sandbox.web.auth import project

BEFORE_RESPONSE = "before_response"


def hold_webhooks() -> None:
    """Keep this request's webhooks back until its response is on its way (SET-59)."""
    g.held = project().outbox.hold()


def release_webhooks(response: Response) -> Response:
    """Let them go once the response is sent; before it, and answered, where the project says so (SET-60)."""
    key = g.pop("held", None)
    if key is None:
        return response
    here = project()
    outbox = here.outbox
    if here.settings.webhook_timing == BEFORE_RESPONSE:
        outbox.release_and_settle(key)
    else:
        response.call_on_close(lambda: outbox.release(key))
    return response
