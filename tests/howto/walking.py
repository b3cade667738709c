"""A customer and a merchant in a shop system: an order, its webhook, a partial capture, a refund.

In Vendure, they use its Shop API and its Admin API; WordPress has a payment gateway and a stand-in for
WooCommerce. Two pairs of socks are bought at 10.00 each, and one is shipped. The walk runs in a network of its
own, where the sandbox has the provider's name and port 443.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import requests

from payment_sandbox.client.client import SandboxClient
from tests.support.commands import command
from tests.support.documentation import ROOT

PROJECTS: Final = ROOT / "tests" / "howto" / "projects"
HOST: Final = "api.payments.example"
KEY: Final = "key-of-the-shop"
VENDURE: Final = "http://127.0.0.1:3000"
WORDPRESS: Final = "http://127.0.0.1:8000"
CHECKOUT: Final = (
    'addItemToOrder(productVariantId: "1", quantity: 2) { __typename }',
    'setCustomerForOrder(input: {firstName: "Ada", lastName: "Byron", emailAddress: "ada@shop.example"}) { __typename }',
    'setOrderShippingAddress(input: {streetLine1: "Dam 1", countryCode: "NL"}) { __typename }',
    'setOrderShippingMethod(shippingMethodId: "1") { __typename }',
    'transitionOrderToState(state: "ArrangingPayment") { __typename }',
)
PAY: Final = """addPaymentToOrder(input: {method: "cards", metadata: {returnUrl: "http://127.0.0.1:3000/"}})
    { ... on Order { id lines { id } payments { id metadata } } ... on ErrorResult { message } }"""
LOGIN: Final = 'login(username: "superadmin", password: "superadmin") { __typename }'
SHIP: Final = """addFulfillmentToOrder(input: {lines: [{orderLineId: "%s", quantity: 1}], handler:
    {code: "capture-shipped-lines", arguments: []}}) { ... on Fulfillment { id } ... on ErrorResult { message }
    ... on CreateFulfillmentError { fulfillmentHandlerError } }"""
SHIPPED: Final = 'transitionFulfillmentToState(id: "%s", state: "Shipped") { __typename }'
REFUND: Final = """refundOrder(input: {paymentId: "%s", amount: %d, lines: [], shipping: 0, adjustment: 0})
    { ... on Refund { state metadata } ... on ErrorResult { message } }"""


class Vendure:
    """The shop as a customer and a member of the staff use it."""

    def __init__(self) -> None:
        self.customer, self.staff = requests.Session(), requests.Session()
        self._admin(LOGIN)

    def buy(self) -> str:
        """Buy as a guest; return the address of the payment page."""
        for step in CHECKOUT:
            assert self._query(self.customer, "shop", f"mutation {{ {step} }}")["__typename"] == "Order", step
        self.order = self._query(self.customer, "shop", f"mutation {{ {PAY} }}")
        self.payment = self.order["payments"][0]
        page: str = self.payment["metadata"]["public"]["paymentUrl"]
        return page

    def status(self) -> str:
        state: str = self._query(self.staff, "admin", f'{{ order(id: "{self.order["id"]}") {{ state }} }}')[
            "state"
        ]
        return state

    def ship(self) -> None:
        """Ship one of two pieces."""
        fulfillment = self._admin(SHIP % self.order["lines"][0]["id"])
        assert "id" in fulfillment, fulfillment
        assert self._admin(SHIPPED % fulfillment["id"])["__typename"] == "Fulfillment"
        assert self.status() == "PartiallyShipped"

    def refund(self, amount: int) -> str | None:
        """Refund the payment; return the error if it is refused."""
        refund = self._admin(REFUND % (self.payment["id"], amount))
        return None if refund["state"] == "Settled" else refund["metadata"]["error"]

    def _admin(self, mutation: str) -> dict[str, Any]:
        return self._query(self.staff, "admin", f"mutation {{ {mutation} }}")

    def _query(self, session: requests.Session, api: str, query: str) -> dict[str, Any]:
        response = session.post(f"{VENDURE}/{api}-api", json={"query": query}, timeout=30).json()
        assert "errors" not in response, response
        (data,) = response["data"].values()
        assert isinstance(data, dict)
        return data


class WooCommerce:
    """The shop as a customer and a member of the staff use it."""

    def buy(self) -> str:
        """Check out; return the address of the payment page."""
        checkout = self._call("buy")
        assert isinstance(checkout, dict)
        assert checkout["result"] == "success"
        page: str = checkout["redirect"]
        return page

    def status(self) -> str:
        """Return the status in the list of orders."""
        return str(self._call("look"))

    def ship(self) -> None:
        """Refund the missing item, and complete the order: WooCommerce ships whole orders only."""
        assert self._call("refund", amount="10.00") is True
        assert self._call("complete") is True
        assert self.status() == "completed"

    def refund(self, amount: int) -> str | None:
        """Refund with the button of the order; return the error if it is refused."""
        message = self._call("refund", amount=f"{amount / 100}")
        return None if message is True else str(message)

    def _call(self, action: str, **parameters: str) -> object:
        response = requests.get(WORDPRESS, params={"do": action, **parameters}, timeout=30)
        assert response.status_code == 200, response.text
        result: object = response.json()
        return result


def started(name: str, packages: Path, folder: Path, ca_file: str) -> Iterator[Vendure | WooCommerce]:
    """Start the project of a shop system; its output goes to a log that the test shows."""
    shutil.copytree(PROJECTS / name, folder, dirs_exist_ok=True)
    environment = {**os.environ, "PAYMENTS_KEY": KEY, "SANDBOX_CA": ca_file, "NODE_EXTRA_CA_CERTS": ca_file}
    if name == "vendure":
        program = ["node", "shop.js"]
        (folder / "node_modules").symlink_to(packages / "node_modules")
        environment["WEBHOOK_URL"] = f"{VENDURE}/payments/webhook"
    else:
        program = ["php", "-S", "127.0.0.1:8000", "index.php"]
        for each in ("wp-includes", "wp-admin", "wp-settings.php"):
            (folder / each).symlink_to(packages / "usr" / "share" / "wordpress" / each)
        environment |= {"SHOP": WORDPRESS, "PHP_CLI_SERVER_WORKERS": "2"}
    with (folder / "shop.log").open("w") as log, subprocess.Popen(
        program, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            if name == "vendure":
                assert "ready\n" in iter(process.stdout.readline, ""), "the shop has ended"
                yield Vendure()
            else:
                retries = "--retry 300 --retry-delay 1 --retry-connrefused --retry-max-time 60"
                wait = f"curl --silent --fail {retries} {WORDPRESS}/?do=look"
                subprocess.run(wait.split(), check=True, timeout=120, stdout=subprocess.DEVNULL)
                yield WooCommerce()
        finally:
            process.kill()


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


def walk(shop: Vendure | WooCommerce, sandbox: SandboxClient, ca_file: str) -> dict[str, Any]:
    """Buy, pay, ship a part, and refund too much and then a part."""
    page = shop.buy()
    response = requests.get(page, headers={"Accept": "text/html"}, verify=ca_file, timeout=10)
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


def main(name: str, packages: str) -> None:
    """Walk, and print the results; the report goes to standard error, for failures."""
    folder = Path.cwd()
    with stand_in(folder) as ready:
        session = requests.Session()
        session.trust_env, session.verify = False, ready["ca_file"]  # requests prefers the environment
        sandbox = SandboxClient(ready["listening"], KEY, session=session)
        for shop in started(name, Path(packages), folder, ready["ca_file"]):
            try:
                print(json.dumps(walk(shop, sandbox, ready["ca_file"])))
            finally:
                print(sandbox.report(), file=sys.stderr)
        sandbox.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
