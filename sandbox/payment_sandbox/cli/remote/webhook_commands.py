"""The commands for webhooks."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from payment_sandbox.cli.options import fail, print_once, say, short_time, trust_of_option
from payment_sandbox.cli.remote.command_run import NEWEST, CommandRun, remote
from payment_sandbox.client import listening
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving.posting import webhook_poster
from payment_sandbox.web.answers.records import Webhook

DELIVERED, LOST, UNSENT = "delivered", "lost", "unsent"
STOP_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
State = Literal["pending", "delivered", "failed", "lost", "unsent"]


@remote("webhooks --state failed")
def webhooks(
    call: CommandRun,
    *,
    order_id: Annotated[str | None, "Only webhooks of this order."] = None,
    state: Annotated[State | None, "Only webhooks in this state."] = None,
) -> None:
    """List webhooks with the outcomes of their attempts."""
    query = {"order_id": order_id, "state": state}
    answer = call.sandbox.call("GET", "/control/webhooks/", query=query)
    if state is None:
        unsent = call.sandbox.call("GET", "/control/webhooks/", query={**query, "state": UNSENT})
        answer["items"] += unsent["items"]
    if state == DELIVERED:
        answer["items"] = [item for item in answer["items"] if not item["lost"]]
    call.show(answer, _format_webhooks)


def _format_webhooks(answer: Mapping[str, list[Webhook]]) -> str:
    lines = []
    for item in answer["items"]:
        state = LOST if item["lost"] else item["state"]
        address = item["url"] or "not sent: no address"
        lines.append(f"{state:9} {item['order_id']}  {address}  id {item['id']}")
        for attempt in item["attempts"]:
            response = attempt["response"]
            status = response["status"] if response is not None else None
            outcome = attempt["fault"] or attempt["error"] or status
            lines.append(f"  {attempt['at']}  {outcome}")
    return "\n".join(lines) or "no webhooks"


@remote("redeliver last")
def redeliver(
    call: CommandRun,
    webhook: str | None = None,
    *,
    to: Annotated[str | None, "Deliver all unsent webhooks to this address."] = None,
) -> None:
    """Resend a webhook: by its id, the newest one of an order, or the last one of the project.

    With --to, deliver all webhooks that were not sent because no address was set.
    """
    if (webhook is None) == (to is None):
        fail("give a webhook, or --to with an address")
    if to is not None:
        delivered = call.sandbox.deliver_unsent(to if "://" in to else f"http://{to}")
        call.show({"items": delivered}, _format_webhooks)
    if webhook is not None:
        call.show(_resend(call, webhook), lambda item: _format_webhooks({"items": [item]}))


def _resend(call: CommandRun, webhook: str) -> Webhook:
    known = call.sandbox.webhooks()
    matching = known if webhook == NEWEST else [item for item in known if item["id"].startswith(webhook)]
    if not matching:
        order_id = call.order_id(webhook)
        matching = [item for item in known if item["order_id"] == order_id]
        if not matching and call.sandbox.webhooks(order_id, "unsent"):
            fail(
                f"the webhooks of order {order_id} were not sent, because no address was set: deliver them "
                "with payment-sandbox redeliver --to URL"
            )
        if not matching:
            fail(f"order {order_id} has no webhooks; is a webhook_url set? See payment-sandbox settings")
    return call.sandbox.redeliver(matching[-1]["id"])


@remote("listen --forward-to http://localhost:3000/webhook")
def listen(
    call: CommandRun,
    *,
    forward_to: Annotated[str, "The shop's webhook address, as seen from this machine."],
    shop_ca: Annotated[Path | None, "Certificates to trust for the shop."] = None,
    insecure: Annotated[bool, "Do not check the certificate of the shop."] = False,
) -> None:
    """Forward the project's webhooks to a shop that the server cannot reach, until Ctrl-C.

    The server records the shop's answers and schedules retries as usual. Webhooks wait while the server or
    the shop restarts. If this command is killed, webhooks in flight are delivered again.
    """
    forward_to = forward_to if "://" in forward_to else f"http://{forward_to}"
    trusted = trust_of_option("--shop-ca", shop_ca, is_insecure=insecure)

    def print_forwarded(result: listening.ForwardedWebhook) -> None:
        line = json.dumps(result.as_mapping()) if call.as_json else make_printable(_format_forwarded(result))
        print_once(f"{line}\n")

    def print_server(problem: str | None) -> None:
        forwarding = f"Forwarding webhooks of {call.sandbox.base_url} to {forward_to}; stop with Ctrl-C."
        waiting = f"the sandbox is unreachable: {problem}; webhooks wait until the sandbox is back"
        say(forwarding if problem is None else waiting, to_stderr=True)

    send = webhook_poster(trusted)
    _run_listener(
        listening.Listener(
            call.sandbox, forward_to, on_forwarded=print_forwarded, on_server=print_server, send=send
        )
    )


def _run_listener(listener: listening.Listener) -> None:
    """Forward webhooks until a signal, then return delivery to the server."""
    for number in STOP_SIGNALS:  # shells start background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        listener.run()
    except KeyboardInterrupt:
        for number in STOP_SIGNALS:  # a second signal must not interrupt the disconnect
            signal.signal(number, signal.SIG_IGN)
        say("", _disconnect(listener), to_stderr=True)
    except listening.ListenerReplaced:
        fail("another payment-sandbox listen has taken over the webhooks of this project")


def _disconnect(listener: listening.Listener) -> str:
    """Stop forwarding, and return a sentence that states where webhooks now go."""
    try:
        is_changed = listener.disconnect()
    except OSError:
        return (
            "The sandbox is unreachable, so its webhooks keep waiting for payment-sandbox listen; "
            "payment-sandbox settings forward_to=null returns delivery to the sandbox."
        )
    return (
        "The sandbox delivers webhooks itself again."
        if is_changed
        else "Webhooks already go to another address."
    )


def _format_forwarded(result: listening.ForwardedWebhook) -> str:
    offer, reply = result.offer, result.reply
    outcome = reply.error or f"answered {reply.status} in {reply.duration_ms:.0f} ms"
    warning = f"  {reply.warning}" if reply.warning else ""
    webhook = f"webhook {offer['status']}  order {offer['order_id']}"
    return f"{short_time(offer['at'])}  {webhook}  attempt {offer['number']}  {outcome}{warning}"
