"""A shop that takes card payments. Leave it as it is, and build on it."""

from typing import Any

from frame import URL, Sale, Storefront, Unanswered

PAID = ("completed", "accepted")
OVER = ("cancelled", "expired", "error")


class CardShop(Storefront):
    """Checkout, webhooks, the customer's return and the hourly job."""

    def order(self, sale: Sale) -> dict[str, Any]:
        """The payment order of a sale; each try has a number of its own."""
        return {
            "currency": "EUR",
            "amount": sale.amount,
            "merchant_order_id": f"{sale.number}-{sale.notes['tries']}",
            "return_url": f"{URL}/thanks",
            "webhook_url": f"{URL}/webhook",
            "transactions": [self.transaction(sale)],
        }

    def transaction(self, sale: Sale) -> dict[str, Any]:
        """How the customer pays."""
        return {"payment_method": "credit-card"}

    def checkout(self, sale: Sale) -> str:
        sale.notes["tries"] = sale.notes.get("tries", 0) + 1
        made = self.call("POST", "/v1/orders/", self.order(sale)).data
        with self.lock:
            if made["id"] not in sale.orders:
                sale.orders.append(made["id"])
        return self.page(made)

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
        """Whether nothing more can happen to the payment of a sale."""
        return sale.paid > 0 or sale.cancelled

    def learn(self, order_id: str) -> None:
        """Read an order, and note what it says."""
        order = self.call("GET", f"/v1/orders/{order_id}/").data
        with self.lock:
            sale = self.sale_of(order_id) or self.adopt(order)
            if "is-refund" in order["flags"]:
                self.note_refund(order)
            elif sale is not None:
                self.note(sale, order)

    def adopt(self, order: dict[str, Any]) -> Sale | None:
        """Adopt an order that was created, and whose response was lost."""
        sale = self.sales.get(str(order.get("merchant_order_id")).rpartition("-")[0])
        if sale is not None:
            sale.orders.append(order["id"])
        return sale

    def note(self, sale: Sale, order: dict[str, Any]) -> None:
        """Note what an order of a sale says; what is paid stays paid, unless the money is gone."""
        if order["status"] in PAID and not sale.paid:
            sale.paid, sale.notes["paid_with"] = order["amount"], order["id"]
        elif order["status"] in OVER and sale.notes.get("paid_with") == order["id"] and not sale.shipped:
            sale.paid = 0
        if order["status"] in OVER and order["transactions"][-1]["payment_method"] == "credit-card":
            sale.notes.setdefault("over", set()).add(order["id"])  # a card payment does not come back

    def note_refund(self, refund: dict[str, Any]) -> None:
        """Note what a refund says: an order of its own."""
