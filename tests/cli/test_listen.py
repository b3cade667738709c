"""The command ``listen`` in a separate process."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import trigger
from tests.support.commands import started
from tests.support.driver import Sandbox
from tests.support.shop import Shop

Listen = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def listen(sandbox: Sandbox) -> Iterator[Listen]:
    """Start the command, and wait until it forwards webhooks."""
    with ExitStack() as stack:

        def start(*options: str) -> subprocess.Popen[str]:
            connection = ["--url", sandbox.url, "--key", sandbox.key]
            process = stack.enter_context(started("listen", *connection, *options))
            assert process.stderr is not None
            assert "Forwarding webhooks of " in process.stderr.readline()
            return process

        yield start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_webhooks_are_printed_and_returned_to_the_server_at_the_end(
    listen: Listen, client: SandboxClient, shop: Shop, number: int
) -> None:
    """Each webhook is printed with the shop's answer; after the end, the server sends webhooks itself."""
    process = listen("--forward-to", shop.url.removeprefix("http://"))
    shop.answer = lambda received: 503
    order = trigger(client, "expired")["order"]
    assert process.stdout is not None
    line = process.stdout.readline()
    assert f"webhook expired  order {order['id']}  attempt 1  answered 503 in " in line
    process.send_signal(number)
    assert process.wait(60) == 0
    assert process.stderr is not None
    assert "The sandbox delivers webhooks itself again." in process.stderr.read()


def test_programs_get_json(listen: Listen, client: SandboxClient, shop: Shop) -> None:
    """Each webhook is printed as one object."""
    process = listen("--forward-to", shop.url, "--json")
    order = trigger(client, "expired")["order"]
    assert process.stdout is not None
    webhook = json.loads(process.stdout.readline())
    assert webhook["order_status"] == "expired"
    assert (webhook["order_id"], webhook["status"], webhook["number"], webhook["error"]) == (
        order["id"],
        200,
        1,
        None,
    )
