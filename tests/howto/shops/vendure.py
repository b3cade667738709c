"""Vendure: a customer buys through its Shop API, and the staff ships and refunds through its Admin API."""

import shutil
import sys
from collections.abc import Iterator
from typing import Any, Final

import requests

from tests.howto.shops.walking import KEY, Place, main
from tests.support.documentation import ROOT

PROJECT: Final = ROOT / "tests" / "howto" / "projects" / "vendure"
SHOP: Final = "http://127.0.0.1:3000"
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
    """The shop, seen by a customer and a member of the staff."""

    def __init__(self) -> None:
        self.customer, self.staff = requests.Session(), requests.Session()
        self._admin(LOGIN)

    def buy(self) -> str:
        """As a guest."""
        for step in CHECKOUT:
            assert self._ask(self.customer, "shop", f"mutation {{ {step} }}")["__typename"] == "Order", step
        self.order = self._ask(self.customer, "shop", f"mutation {{ {PAY} }}")
        self.payment = self.order["payments"][0]
        page: str = self.payment["metadata"]["public"]["paymentUrl"]
        return page

    def status(self) -> str:
        """The order's state."""
        shown: str = self._ask(self.staff, "admin", f'{{ order(id: "{self.order["id"]}") {{ state }} }}')[
            "state"
        ]
        return shown

    def ship(self) -> None:
        """One of the line's two."""
        made = self._admin(SHIP % self.order["lines"][0]["id"])
        assert "id" in made, made
        assert self._admin(SHIPPED % made["id"])["__typename"] == "Fulfillment"
        assert self.status() == "PartiallyShipped"

    def refund(self, amount: int) -> str | None:
        """From the payment."""
        refund = self._admin(REFUND % (self.payment["id"], amount))
        return None if refund["state"] == "Settled" else refund["metadata"]["error"]

    def _admin(self, mutation: str) -> dict[str, Any]:
        return self._ask(self.staff, "admin", f"mutation {{ {mutation} }}")

    def _ask(self, session: requests.Session, api: str, query: str) -> dict[str, Any]:
        answer = session.post(f"{SHOP}/{api}-api", json={"query": query}, timeout=30).json()
        assert "errors" not in answer, answer
        (shown,) = answer["data"].values()
        assert isinstance(shown, dict)
        return shown


def start(place: Place) -> Iterator[Vendure]:
    """The project of the page, with a product."""
    shutil.copytree(PROJECT, place.folder, dirs_exist_ok=True)
    (place.folder / "node_modules").symlink_to(place.packages / "node_modules")
    environment = {
        "NODE_EXTRA_CA_CERTS": place.ca_file,
        "PAYMENTS_KEY": KEY,
        "WEBHOOK_URL": f"{SHOP}/payments/webhook",
    }
    with place.running(["node", "shop.js"], **environment) as process:
        assert process.stdout is not None
        assert "ready\n" in iter(process.stdout.readline, ""), "it has ended"
        yield Vendure()


if __name__ == "__main__":
    main(start, sys.argv[1])
