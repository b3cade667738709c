"""A customer and a merchant in a shop system: an order, its webhook, a part capture, a refund.

Runs alone in a network of its own, in which the sandbox has the provider's name and port 443.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypedDict

import requests

from payment_sandbox.client.client import SandboxClient
from tests.support.commands import command

HOST: Final = "api.payments.example"
KEY: Final = "key-of-the-shop"
TEXT_PAGE: Final = {"Accept": "text/html"}


class Shop(Protocol):
    """What the walk needs of a shop system: two pairs of socks at 10.00 each are bought, and one is shipped."""

    def buy(self) -> str:
        """Put socks into the basket, check out, and return where the customer is sent."""
        ...

    def status(self) -> str:
        """What the shop thinks of the order."""
        ...

    def ship(self) -> None:
        """Ship one of the two."""
        ...

    def refund(self, amount: int) -> str | None:
        """Refund some cents; return what the shop says if it is refused."""
        ...


class Seen(TypedDict):
    """What a walk has seen, for the test to judge."""

    page: tuple[str, int]  # the address of the service, and how the page answered
    paid: str
    refused: str | None
    amounts: dict[str, int]
    refunds: list[int | None]  # the statuses of these calls
    webhooks: list[str]
    findings: list[str]


class Place(NamedTuple):
    """Where a shop runs: the packages of its system, its own files, and the certificate to trust."""

    packages: Path
    folder: Path
    ca_file: str

    @contextmanager
    def running(self, program: Sequence[str], **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Run a program of the shop while it is needed; its output goes to a file that the test shows."""
        log = (self.folder / "shop.log").open("w")
        with log, subprocess.Popen(
            program, env={**os.environ, **environment}, cwd=self.folder, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()


Start = Callable[[Place], Iterator[Shop]]


@contextmanager
def stand_in(folder: Path) -> Iterator[Mapping[str, str]]:
    """The sandbox under the provider's name, to which a line in the hosts file leads, as the server prints it."""
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


def walk(shop: Shop, sandbox: SandboxClient, ca_file: str) -> Seen:
    """Buy, pay, ship a part, refund a part and too much."""
    page = shop.buy()
    shown = requests.get(page, headers=TEXT_PAGE, verify=ca_file, timeout=10)
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
        "page": (page.rpartition("/pay/")[0], shown.status_code),
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
    """Walk, and print what was seen; the report goes to standard error, for a failure."""
    folder = Path.cwd()
    with stand_in(folder) as ready:
        sandbox = SandboxClient(ready["listening"], KEY)
        for shop in start(Place(Path(packages), folder, ready["ca_file"])):
            try:
                print(json.dumps(walk(shop, sandbox, ready["ca_file"])))
            finally:
                print(sandbox.report(), file=sys.stderr)
        sandbox.close()


def until_it_answers(url: str, seconds: float = 60) -> None:
    """Wait for a server to listen."""
    tries = ["--retry", "300", "--retry-delay", "1", "--retry-connrefused", "--retry-max-time", str(seconds)]
    asked = ["curl", "--silent", "--fail", *tries, url]
    subprocess.run(asked, check=True, timeout=2 * seconds, stdout=subprocess.DEVNULL)
