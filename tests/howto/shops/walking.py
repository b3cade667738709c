"""A customer and a merchant in a shop system: an order, its webhook, a partial capture, a refund.

The walk runs in a network of its own, where the sandbox has the provider's name and port 443."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import requests

from payment_sandbox.client.client import SandboxClient
from tests.support.commands import command

HOST: Final = "api.payments.example"
KEY: Final = "key-of-the-shop"
TEXT_PAGE: Final = {"Accept": "text/html"}


class Shop(Protocol):
    """A shop system in which two pairs of socks are bought at 10.00 each, and one is shipped."""

    def buy(self) -> str:
        """Put socks into the basket and check out; return the address of the payment page."""
        ...

    def status(self) -> str:
        """Return the status of the order in the shop."""
        ...

    def ship(self) -> None:
        """Ship one of the two."""
        ...

    def refund(self, amount: int) -> str | None:
        """Refund some cents; return the shop's message if the refund is refused."""
        ...


class ShopFiles(NamedTuple):
    """The files of a shop: the packages of its system, its own folder, and the trusted certificate."""

    packages: Path
    folder: Path
    ca_file: str

    @contextmanager
    def running(self, program: Sequence[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Run a program of the shop during a block; its output goes to a log that the test shows."""
        log = (self.folder / "shop.log").open("w")
        with log, subprocess.Popen(
            program, env={**os.environ, **environment}, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()


Start = Callable[[ShopFiles], Iterator[Shop]]


@contextmanager
def stand_in(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run the sandbox under the provider's name, with the line for the hosts file that it prints."""
    (folder / "projects.yaml").write_text(f"projects:\n  - {{api_key: {KEY}, clock: frozen}}\n")
    ready = folder / "ready.json"
    options = ["--stand-in-for", HOST, "--project", "projects.yaml", "--ready-file", str(ready), "--quiet"]
    with subprocess.Popen(
        command("serve", *options), stdout=subprocess.PIPE, text=True, cwd=folder
    ) as server:
        assert server.stdout is not None
        for line in server.stdout:
            if line.strip().startswith("echo "):
                subprocess.run(["sh", "-c", line.replace("sudo ", "")], check=True, stdout=subprocess.DEVNULL)
            if line.strip().startswith("sudo sed"):
                break
        try:
            yield json.loads(ready.read_text())
        finally:
            server.terminate()
            server.communicate()


def walk(shop: Shop, sandbox: SandboxClient, ca_file: str) -> dict[str, Any]:
    """Buy, pay, ship a part, and refund too much and then a part."""
    page = shop.buy()
    response = requests.get(page, headers=TEXT_PAGE, verify=ca_file, timeout=10)
    (order,) = sandbox.orders()
    sandbox.act(order["id"], "customer", "pay")
    sandbox.wait(idle=True)
    paid = shop.status()
    shop.ship()
    refused = shop.refund(1001)
    assert shop.refund(500) is None
    sandbox.wait(idle=True)
    calls = sandbox.journal(method="POST")
    return {
        "page": (page.rpartition("/pay/")[0], response.status_code),
        "paid": paid,
        "refused": refused,
        "amounts": sandbox.call("GET", f"/v1/orders/{order['id']}/?fields[]=amount_details")[
            "amount_details"
        ],
        "refunds": [each["status"] for each in calls if each["path"].endswith("/refunds/")],
        "webhooks": sorted({each["state"] for each in sandbox.webhooks()}),
        "findings": [finding["rule"] for finding in sandbox.call("GET", "/control/review/")["items"]],
    }


def main(start: Start, packages: str) -> None:
    """Walk, and print the results; the report goes to standard error, for failures."""
    folder = Path.cwd()
    with stand_in(folder) as ready:
        session = requests.Session()
        session.trust_env, session.verify = False, ready["ca_file"]  # requests prefers the environment
        sandbox = SandboxClient(ready["listening"], KEY, session=session)
        for shop in start(ShopFiles(Path(packages), folder, ready["ca_file"])):
            try:
                print(json.dumps(walk(shop, sandbox, ready["ca_file"])))
            finally:
                print(sandbox.report(), file=sys.stderr)
        sandbox.close()


def wait_for_server(url: str, seconds: float = 60) -> None:
    """Wait until a server responds."""
    command = f"curl --silent --fail --retry 300 --retry-delay 1 --retry-connrefused --retry-max-time {seconds} {url}"
    subprocess.run(command.split(), check=True, timeout=2 * seconds, stdout=subprocess.DEVNULL)
