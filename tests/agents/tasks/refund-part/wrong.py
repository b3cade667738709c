"""The shop."""

from cards import CardShop
from frame import Refused


class Shop(CardShop):
    """Accepts returns."""

    def take_back(self, sale, amount, slip):
        with self.desk:
            slips = sale.notes.setdefault("slips", {})
            if slip in slips or sum(slips.values()) + amount > sale.paid:
                raise Refused("this slip was refunded before, or the amount is more than was paid")
            slips[slip] = amount
            read = self.call("GET", f"/v1/orders/{sale.notes['paid_with']}/")
            body = {"amount": amount, "description": f"Slip {slip}"}
            self.call("POST", f"/v1/orders/{sale.notes['paid_with']}/refunds/", body, if_match=read.etag)
            sale.refunded += amount
        return "refunded"
