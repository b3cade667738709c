"""The command ``listen`` in a separate process."""

import json
import signal
from contextlib import closing

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.triggers import trigger
from tests.cli.forks import Fork
from tests.support.driver import Sandbox
from tests.support.shop import Shop


@pytest.mark.parametrize(("number", "options"), [(signal.SIGINT, ()), (signal.SIGTERM, ("--json",))])
def test_webhooks_are_printed_and_returned_to_the_server_at_the_end(
    sandbox: Sandbox, client: SandboxClient, shop: Shop, number: int, options: tuple[str, ...]
) -> None:
    """Each webhook is printed with the shop's answer; after the end, the server sends webhooks itself."""
    address = ("--url", sandbox.url, "--key", sandbox.key, "--forward-to", shop.url.removeprefix("http://"))
    with closing(Fork("listen", *address, *options)) as process:
        assert "Forwarding webhooks of " in process.stderr.readline()
        shop.answer = lambda received: 503
        order = trigger(client, "expired")["order"]
        line = process.stdout.readline()
        if options:
            webhook = json.loads(line)
            assert (webhook["order_id"], webhook["order_status"]) == (order["id"], "expired")
            assert (webhook["status"], webhook["number"], webhook["error"]) == (503, 1, None)
        else:
            assert f"webhook expired  order {order['id']}  attempt 1  answered 503 in " in line
        process.send_signal(number)
        assert process.wait() == 0
        assert "The sandbox delivers webhooks itself again." in process.stderr.read()
