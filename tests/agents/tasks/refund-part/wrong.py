"""The shop."""

from cards import CardShop
from frame import Refused


class Shop(CardShop):
    """Takes goods back."""

    def take_back(self, sale, amount, slip):
        with self.desk:
            slips = sale.notes.setdefault("slips", {})
            if slip in slips or sum(slips.values()) + amount > sale.paid:
                raise Refused("that slip counted before, or it is more than was paid")
            slips[slip] = amount
            read = self.call("GET", f"/v1/orders/{sale.notes['paid_with']}/")
            body = {"amount": amount, "description": f"Slip {slip}"}
            self.call("POST", f"/v1/orders/{sale.notes['paid_with']}/refunds/", body, if_match=read.etag)
            sale.refunded += amount
        return "refunded"
