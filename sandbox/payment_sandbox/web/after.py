"""When webhooks are sent: after the response, or before it if the project's settings say so."""

from flask import Response

from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.effects import WebhooksFirst
from payment_sandbox.web.auth import project
from payment_sandbox.web.carried import KEEP_HELD, exchange
from payment_sandbox.web.placing import begin_waiting, may_wait


def hold_webhooks() -> None:
    """Hold back this request's webhooks until its response is sent (SET-59); to be called before an edit."""
    owner = project()
    if _comes_before(owner):
        begin_waiting()
    exchange().held = owner, owner.epoch, owner.epoch.outbox.hold()


def _comes_before(owner: Project) -> bool:
    rehearsed = exchange().rehearsed
    is_first = rehearsed is not None and isinstance(rehearsed.effect, WebhooksFirst)
    return (is_first or owner.settings.webhook_timing == BEFORE_RESPONSE) and may_wait()


def release_webhooks(response: Response) -> Response:
    """Send the held webhooks after the response, or deliver them before it (SET-60)."""
    state = exchange()
    held, state.held = state.held, None
    if held is None:
        return response
    owner, epoch, key = held
    if _comes_before(owner):
        owner.deliver_held(epoch, key)
    elif (keep := state.request.environ.get(KEEP_HELD)) is not None:
        keep(owner, epoch, key)
    else:
        response.call_on_close(lambda: owner.release(epoch, key))
    return response
