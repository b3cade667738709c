"""The shop."""

from contextlib import suppress

from cards import CardShop
from frame import Refused, Unanswered


class Shop(CardShop):
    """Takes goods back."""

    def take_back(self, sale, amount, slip):
        with self.desk:
            slips = sale.notes.setdefault("slips", {})
            if slip in slips or sum(slips.values()) + amount > sale.paid:
                raise Refused("that slip counted before, or it is more than was paid")
            read = self.call("GET", f"/v1/orders/{sale.notes['paid_with']}/")
            slips[slip] = amount
            sale.notes.setdefault("asked", {})[slip] = read.etag
            self.ask(sale, slip)
        return "refunded"

    def ask(self, sale, slip):
        """Ask for the refund of a slip, if the order is as it was before the first try."""
        body = {"amount": sale.notes["slips"][slip], "description": f"Slip {slip}"}
        path = f"/v1/orders/{sale.notes['paid_with']}/refunds/"
        try:
            refund = self.call("POST", path, body, if_match=sale.notes["asked"][slip]).data
        except Unanswered:
            sale.notes.setdefault("unanswered", set()).add(slip)
            raise
        except Refused as why:
            if not str(why).startswith("PreconditionFailed"):
                del sale.notes["asked"][slip], sale.notes["slips"][slip]
                raise
            if slip not in sale.notes.get("unanswered", ()):  # something else has changed the order
                sale.notes["asked"][slip] = self.call("GET", path.removesuffix("refunds/")).etag
                self.ask(sale, slip)
                return
            del sale.notes["asked"][slip]  # an earlier try was carried out
            with self.lock:
                sale.notes.setdefault("refunds", {}).setdefault(slip, body["amount"])
                sale.refunded = sum(sale.notes["refunds"].values())
            return
        del sale.notes["asked"][slip]
        with self.lock:
            self.note_refund(refund)

    def note_refund(self, refund):
        sale = self.sale_of(refund["refund_of_order_id"])
        if sale is not None:
            refunds = sale.notes.setdefault("refunds", {})
            slip = refund["description"].removeprefix("Slip ")
            refunds[slip] = refund["amount"] if refund["status"] == "completed" else 0
            sale.refunded = sum(refunds.values())

    def look_at_open_sales(self):
        super().look_at_open_sales()
        with self.desk:
            for sale in list(self.sales.values()):
                for slip in list(sale.notes.get("asked", {})):
                    with suppress(Refused):
                        self.ask(sale, slip)
