"""Sends a shop the webhooks of a paid and of a refused order, and prints its answers as JSON.

``python -m tests.compat.frameworks.meet flask`` calls an application; with ``-- COMMAND``, the shop runs on a port.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final

from payment_sandbox import PaymentSandbox, PaymentSandboxServer
from payment_sandbox.orders.actions import ActionName
from tests.support.ports import free_port

ORDER: Final = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
CALLS: Final[dict[str, tuple[str, ActionName]]] = {
    # the path of the webhook, and the customer's action
    "paid": ("/slash/", "pay"),
    "refused": ("/slash/", "fail"),
    "paid at a path without a slash": ("/bare", "pay"),
    "missing slash": ("/slash", "pay"),
    "extra slash": ("/bare/", "pay"),
    "protected": ("/protected/", "pay"),
}


def meet(api: PaymentSandbox, url: str) -> dict[str, str]:
    """Return the shop's answer to each webhook: the status that it has read, or the one of HTTP."""
    answers = {}
    for name, (path, action) in CALLS.items():
        body = {**ORDER, "webhook_url": f"{url}{path}"}
        order = api.session.post(f"{api.base_url}/v1/orders/", json=body, timeout=10).json()
        api.client.act(order["id"], "customer", action)
        api.client.wait(idle=True)
        *_, webhook = api.client.webhooks(order_id=order["id"])
        answer = webhook["attempts"][0]["response"]
        assert answer is not None, webhook["attempts"][0]["error"]
        answers[name] = answer["body"] if answer["status"] == 200 else str(answer["status"])
    return answers


def wait_for_port(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a program listens on a port."""
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        with suppress(subprocess.TimeoutExpired):
            raise SystemExit(f"the shop ended with {process.wait(0.1)}")
    raise SystemExit("the shop does not listen")


@contextmanager
def on_port(api: PaymentSandbox, command: Sequence[str]) -> Iterator[str]:
    """Run a shop until the block ends; yield its address."""
    port = free_port()
    environment = {**os.environ, "PORT": str(port), "URL": api.base_url, "KEY": api.api_key}
    words = [word.replace("PORT", str(port)) for word in command]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    try:
        wait_for_port(port, process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def main(name: str, *command: str) -> None:
    """Meet one shop."""
    with PaymentSandboxServer() as server, server.project() as api:
        if command:
            with on_port(api, command[1:]) as url:
                answers = meet(api, url)
        else:
            shops = import_module("tests.compat.frameworks.programs.in_process")
            api.deliver_to(shops.SHOPS[name](shops.Payments(api)))
            answers = meet(api, "http://testserver")
    print(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
