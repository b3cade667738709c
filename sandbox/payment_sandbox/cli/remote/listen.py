"""The command that forwards webhooks to a shop."""

import json
import signal
from functools import partial
from pathlib import Path
from typing import Annotated, Final

from payment_sandbox.cli.options import fail, print_once, say, short_time, trust_of_option
from payment_sandbox.cli.remote.declaring import is_for_programs, remote, with_scheme
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.listening import ForwardedWebhook, Listener, ListenerReplaced
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving.courier import post_webhook

STOP_SIGNALS: Final = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@remote("listen --forward-to http://localhost:3000/webhook")
def listen(
    sandbox: SandboxClient,
    *,
    forward_to: Annotated[str, "The shop's webhook address, as seen from this machine."],
    shop_ca: Annotated[Path | None, "Certificates to trust for the shop."] = None,
    insecure: Annotated[bool, "Do not check the certificate of the shop."] = False,
) -> None:
    """Forward the project's webhooks to a shop that the server cannot reach, until Ctrl-C.

    The server records the shop's answers and schedules retries as usual. Webhooks wait while the server or
    the shop restarts. If this command is killed, webhooks in flight are delivered again.
    """
    url, as_json = with_scheme(forward_to), is_for_programs()
    trusted = trust_of_option("--shop-ca", shop_ca, is_insecure=insecure)
    send = partial(post_webhook, trusted=trusted)

    def print_forwarded(forwarded: ForwardedWebhook) -> None:
        offer, reply = forwarded
        outcome = reply.error or f"answered {reply.status} in {reply.duration_ms:.0f} ms"
        webhook = f"webhook {offer['status']}  order {offer['order_id']}  attempt {offer['number']}"
        line = "  ".join(filter(None, (short_time(offer["at"]), webhook, outcome, reply.warning)))
        print_once(f"{json.dumps(forwarded.as_mapping()) if as_json else make_printable(line)}\n")

    def print_server(problem: str | None) -> None:
        forwarding = f"Forwarding webhooks of {sandbox.base_url} to {url}; stop with Ctrl-C."
        waiting = f"the sandbox is unreachable: {problem}; webhooks wait until the sandbox is back"
        say(forwarding if problem is None else waiting, to_stderr=True)

    listener = Listener(sandbox, url, on_forwarded=print_forwarded, on_server=print_server, send=send)
    for number in STOP_SIGNALS:  # shells start background jobs with SIGINT ignored
        signal.signal(number, signal.default_int_handler)
    try:
        listener.run()
    except KeyboardInterrupt:
        for number in STOP_SIGNALS:  # a second signal must not interrupt the disconnect
            signal.signal(number, signal.SIG_IGN)
        try:
            listener.disconnect()
            ending = "The sandbox delivers webhooks itself again."
        except OSError:
            ending = (
                "The sandbox is unreachable, so its webhooks keep waiting for payment-sandbox listen; "
                "start and stop it again to return delivery to the sandbox."
            )
        say("", ending, to_stderr=True)
    except ListenerReplaced:
        fail("another payment-sandbox listen has taken over the webhooks of this project")
