"""The shop."""

from cards import CardShop
from frame import Refused, Sale


class Shop(CardShop):
    """Charges every month."""

    def transaction(self, sale):
        details = {"recurring_type": "first"}
        if "token" in sale.notes:
            details = {"recurring_type": "recurring", "vault_token": sale.notes["token"]}
        return {"payment_method": "credit-card", "payment_method_details": details}

    def note(self, sale, order):
        super().note(sale, order)
        details = order["transactions"][-1].get("payment_method_details") or {}
        if "vault_token" in details:
            sale.notes["token"] = details["vault_token"]

    def charge(self, sale):
        with self.desk:
            if not sale.paid:
                raise Refused("the subscription has not begun")
            months = sale.notes.setdefault("months", [])
            number = f"{sale.number}-M{len(months) + 2}"
            month = self.sales[number] = Sale(number, sale.amount)
            month.notes["token"] = sale.notes["token"]
            months.append(month)
            self.checkout(month)
        return "charged"

    def page(self, order):
        is_recurring = order["transactions"][-1]["payment_method_details"]["recurring_type"] == "recurring"
        return "" if is_recurring else super().page(order)
