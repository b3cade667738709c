"""The commands for webhooks."""

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from payment_sandbox.cli.options import fail, print_once, say, short_time, trust_of_option
from payment_sandbox.cli.remote.command_run import NEWEST, CommandRun, remote
from payment_sandbox.client import listening
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving.posting import webhook_poster

if TYPE_CHECKING:
    from payment_sandbox.web.answers.records import Webhook

DELIVERED, LOST, UNSENT = "delivered", "lost", "unsent"
STOP_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@remote("webhooks", example="webhooks --state failed")
@click.option("--order-id", "--order", help="Only webhooks of this order.")
@click.option(
    "--state",
    type=click.Choice(["pending", DELIVERED, "failed", LOST, UNSENT]),
    help="Only webhooks in this state.",
)
def webhooks(call: CommandRun, order_id: str | None, state: str | None) -> None:
    """List webhooks with the outcomes of their attempts."""
    query = {"order_id": call.order_id(order_id) if order_id is not None else None, "state": state}
    answer = call.sandbox.call("GET", "/control/webhooks/", query=query)
    if state is None:
        unsent = call.sandbox.call("GET", "/control/webhooks/", query={**query, "state": UNSENT})
        answer["items"] += unsent["items"]
    if state == DELIVERED:
        answer["items"] = [item for item in answer["items"] if not item["lost"]]
    call.show(answer, _format_webhooks)


def _format_webhooks(answer: Mapping[str, "list[Webhook]"]) -> str:
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


@remote("redeliver", example="redeliver last")
@click.argument("webhook", required=False)
@click.option("--to", "target", help="Deliver all unsent webhooks to this address.")
def redeliver(call: CommandRun, webhook: str | None, target: str | None) -> None:
    """Resend a webhook: by its id, the newest one of an order, or the last one of the project.

    With --to, deliver all webhooks that were not sent because no address was set.
    """
    if (webhook is None) == (target is None):
        fail("give a webhook, or --to with an address")
    if target is not None:
        delivered = call.sandbox.deliver_unsent(target if "://" in target else f"http://{target}")
        call.show({"items": delivered}, _format_webhooks)
    if webhook is not None:
        call.show(_resend(call, webhook), lambda item: _format_webhooks({"items": [item]}))


def _resend(call: CommandRun, webhook: str) -> "Webhook":
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


@remote(
    "listen",
    example="listen --forward-to http://localhost:3000/webhook",
)
@click.option("--forward-to", required=True, help="The shop's webhook address, as seen from this machine.")
@click.option(
    "--shop-ca", type=click.Path(path_type=Path, dir_okay=False), help="Certificates to trust for the shop."
)
@click.option("--insecure", is_flag=True, help="Do not check the certificate of the shop.")
def listen(call: CommandRun, forward_to: str, shop_ca: Path | None, insecure: bool) -> None:
    """Forward the project's webhooks to a shop that the server cannot reach, until Ctrl-C.

    The server records the shop's answers and schedules retries as usual. Webhooks wait while the server or
    the shop restarts. If this command is killed, webhooks in flight are delivered again.
    """
    forward_to = forward_to if "://" in forward_to else f"http://{forward_to}"
    trusted = trust_of_option("--shop-ca", shop_ca, is_insecure=insecure)

    def print_forwarded(result: listening.ForwardedWebhook) -> None:
        line = json.dumps(result.as_mapping()) if call.as_json else make_printable(_format_forwarded(result))
        print_once(f"{line}\n")

    def on_server_change(problem: str | None) -> None:
        if problem is None:
            say(
                f"Forwarding webhooks of {call.sandbox.base_url} to {forward_to}; stop with Ctrl-C.",
                to_stderr=True,
            )
        else:
            say(
                f"the sandbox is unreachable: {problem}; webhooks wait until the sandbox is back",
                to_stderr=True,
            )

    listener = listening.Listener(
        call.sandbox,
        forward_to,
        on_forwarded=print_forwarded,
        on_server=on_server_change,
        send=webhook_poster(trusted),
    )
    _run_listener(listener)


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
