"""Vendure: a customer buys through its Shop API, and the staff ships and refunds through its Admin API."""

import shutil
import sys
from collections.abc import Iterator
from typing import Any, Final

import requests

from tests.howto.shops.walking import KEY, ShopFiles, main
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
        response = session.post(f"{SHOP}/{api}-api", json={"query": query}, timeout=30).json()
        assert "errors" not in response, response
        (data,) = response["data"].values()
        assert isinstance(data, dict)
        return data


def start(files: ShopFiles) -> Iterator[Vendure]:
    """Start the project of the page, with a product."""
    shutil.copytree(PROJECT, files.folder, dirs_exist_ok=True)
    (files.folder / "node_modules").symlink_to(files.packages / "node_modules")
    environment = {
        "NODE_EXTRA_CA_CERTS": files.ca_file,
        "PAYMENTS_KEY": KEY,
        "WEBHOOK_URL": f"{SHOP}/payments/webhook",
    }
    with files.running(["node", "shop.js"], **environment) as process:
        assert process.stdout is not None
        assert "ready\n" in iter(process.stdout.readline, ""), "the shop has ended"
        yield Vendure()


if __name__ == "__main__":
    main(start, sys.argv[1])
