"""The shop's calls to the payment service."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

TIMEOUT_SECONDS = 10


class PaymentServiceDown(Exception):
    """There is no usable response, so it is unknown whether the request was carried out."""


class PaymentRefused(Exception):
    """The service refused the request and did nothing."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(f"{kind}: {sentence}")
        self.kind = kind


@dataclass(frozen=True)
class Payment:
    """A payment order as it was read, with the ETag of that version."""

    data: dict[str, Any]
    etag: str | None

    @property
    def order_id(self) -> str:
        order_id: str = self.data["id"]
        return order_id

    @property
    def attempt(self) -> dict[str, Any]:
        attempt: dict[str, Any] = self.data["transactions"][-1]
        return attempt

    @property
    def is_paid(self) -> bool:
        """Whether the customer has paid, or has authorized an amount that can now be captured."""
        return self.data["status"] in ("completed", "accepted")

    @property
    def is_refund(self) -> bool:
        """Whether this is a refund, which has the same shape as an order."""
        return "is-refund" in self.data["flags"]

    @property
    def captured_cents(self) -> int:
        """The captured amount, if it was read."""
        captured: int = self.data["amount_details"]["captured"]
        return captured

    @property
    def is_over(self) -> bool:
        """Whether the payment can no longer succeed."""
        return self.data["status"] in ("cancelled", "expired", "error")


class Payments:
    """The API calls; each is sent once, and a lost response raises an error instead of a blind retry."""

    def __init__(self, base_url: str, api_key: str, session: requests.Session | None = None) -> None:
        self._base_url = base_url
        self._auth = (api_key, "")
        self._session = session or requests.Session()

    def payment_page_url(self, payment: Payment) -> str:
        """Return the payment page's URL; payment_url has no scheme, so the service's scheme is added."""
        return f"{urlsplit(self._base_url).scheme}://{payment.attempt['payment_url']}"

    def create(self, order: dict[str, Any]) -> Payment:
        """Create an order."""
        return self._call("POST", "/v1/orders/", order)

    def read(self, order_id: str, *fields: str) -> Payment:
        """Read an order, with some extra fields; only this shows its status."""
        query = "&".join(f"fields[]={field}" for field in fields)
        return self._call("GET", f"/v1/orders/{order_id}/{'?' if query else ''}{query}")

    def capture(self, payment: Payment, lines: dict[str, int], description: str) -> None:
        """Capture some lines, unless the order has changed since it was read."""
        path = f"/v1/orders/{payment.order_id}/transactions/{payment.attempt['id']}/captures/orderlines/"
        self._call("POST", path, {"description": description, "order_lines": _lines(lines)}, payment.etag)

    def refund(self, payment: Payment, amount_cents: int, description: str) -> Payment:
        """Refund some of the money, unless the order has changed since it was read."""
        body = {"amount": amount_cents, "description": description}
        return self._call("POST", f"/v1/orders/{payment.order_id}/refunds/", body, payment.etag)

    def cancel(self, payment: Payment) -> None:
        """Cancel what has not been captured."""
        self._call("DELETE", f"/v1/orders/{payment.order_id}/", if_match=payment.etag)

    def return_money(self, payment: Payment) -> None:
        """Return the money to the customer: void an authorized amount, or refund a paid one."""
        try:
            self.cancel(payment)
        except PaymentRefused:
            with suppress(PaymentRefused):  # it was refunded before
                self.refund(self.read(payment.order_id), payment.data["amount"], "Paid twice")

    def _call(self, method: str, path: str, body: Any = None, if_match: str | None = None) -> Payment:
        headers = {"If-Match": if_match} if if_match is not None else {}
        try:
            response = self._session.request(
                method,
                f"{self._base_url}{path}",
                json=body,
                headers=headers,
                auth=self._auth,
                timeout=TIMEOUT_SECONDS,
            )
            data = response.json()
        except requests.RequestException as error:  # also for a body that is not JSON
            raise PaymentServiceDown(str(error)) from error
        if response.status_code >= 500 or response.status_code == 429:
            raise PaymentServiceDown(f"{method} {path} answered {response.status_code}")
        if response.status_code >= 400:
            raise PaymentRefused(data["error"]["type"], data["error"]["value"])
        return Payment(data, response.headers.get("ETag"))


def _lines(lines: dict[str, int]) -> list[dict[str, Any]]:
    return [{"merchant_order_line_id": line, "quantity": quantity} for line, quantity in lines.items()]
