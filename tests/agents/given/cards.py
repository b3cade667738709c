"""A shop that takes card payments. Do not change it; build on it."""

from typing import Any

from frame import URL, Sale, Storefront, Unanswered

PAID = ("completed", "accepted")
OVER = ("cancelled", "expired", "error")


class CardShop(Storefront):
    """A shop with checkout, webhooks, the customer's return and an hourly job."""

    def order(self, sale: Sale) -> dict[str, Any]:
        """Return the payment order of a sale; each attempt has its own number."""
        return {
            "currency": "EUR",
            "amount": sale.amount,
            "merchant_order_id": f"{sale.number}-{sale.notes['tries']}",
            "return_url": f"{URL}/thanks",
            "webhook_url": f"{URL}/webhook",
            "transactions": [self.transaction(sale)],
        }

    def transaction(self, sale: Sale) -> dict[str, Any]:
        """Return the transaction of the payment order: the payment method and its details."""
        return {"payment_method": "credit-card"}

    def checkout(self, sale: Sale) -> str:
        sale.notes["tries"] = sale.notes.get("tries", 0) + 1
        order = self.call("POST", "/v1/orders/", self.order(sale)).data
        with self.lock:
            if order["id"] not in sale.orders:
                sale.orders.append(order["id"])
        return self.page(order)

    def webhook(self, order_id: str) -> None:
        self.learn(order_id)

    def thanks(self, order_id: str) -> str:
        try:
            self.learn(order_id)
        except Unanswered:
            pass
        sale = self.sale_of(order_id)
        return "Thank you!" if sale is not None and sale.paid else "We are waiting for your payment."

    def look_at_open_sales(self) -> None:
        for sale in list(self.sales.values()):
            for order_id in list(sale.orders):
                if not self.is_settled(sale) and order_id not in sale.notes.get("over", ()):
                    self.learn(order_id)

    def is_settled(self, sale: Sale) -> bool:
        """Return whether the payment of a sale is final."""
        return sale.paid > 0 or sale.cancelled

    def learn(self, order_id: str) -> None:
        """Read an order, and update its sale."""
        order = self.call("GET", f"/v1/orders/{order_id}/").data
        with self.lock:
            sale = self.sale_of(order_id) or self.adopt(order)
            if "is-refund" in order["flags"]:
                self.note_refund(order)
            elif sale is not None:
                self.note(sale, order)

    def adopt(self, order: dict[str, Any]) -> Sale | None:
        """Adopt an order whose creation succeeded although its response was lost."""
        sale = self.sales.get(str(order.get("merchant_order_id")).rpartition("-")[0])
        if sale is not None:
            sale.orders.append(order["id"])
        return sale

    def note(self, sale: Sale, order: dict[str, Any]) -> None:
        """Update a sale from one of its orders; a paid sale stays paid unless its payment is reversed."""
        if order["status"] in PAID and not sale.paid:
            sale.paid, sale.notes["paid_with"] = order["amount"], order["id"]
        elif order["status"] in OVER and sale.notes.get("paid_with") == order["id"] and not sale.shipped:
            sale.paid = 0
        if order["status"] in OVER and order["transactions"][-1]["payment_method"] == "credit-card":
            sale.notes.setdefault("over", set()).add(order["id"])  # a card payment cannot revive

    def note_refund(self, refund: dict[str, Any]) -> None:
        """Update a sale from a refund, which is an order, too."""
