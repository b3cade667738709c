"""The shop."""

from contextlib import suppress

from cards import CardShop
from frame import Refused, Unanswered


class Shop(CardShop):
    """Accepts returns."""

    def take_back(self, sale, amount, slip):
        with self.desk:
            slips = sale.notes.setdefault("slips", {})
            if slip in slips or sum(slips.values()) + amount > sale.paid:
                raise Refused("this slip was refunded before, or the amount is more than was paid")
            read = self.call("GET", f"/v1/orders/{sale.notes['paid_with']}/")
            slips[slip] = amount
            sale.notes.setdefault("requested", {})[slip] = read.etag
            self.request_refund(sale, slip)
        return "refunded"

    def request_refund(self, sale, slip):
        """Request the refund of a slip, if the order is unchanged since the first attempt."""
        body = {"amount": sale.notes["slips"][slip], "description": f"Slip {slip}"}
        path = f"/v1/orders/{sale.notes['paid_with']}/refunds/"
        try:
            refund = self.call("POST", path, body, if_match=sale.notes["requested"][slip]).data
        except Unanswered:
            sale.notes.setdefault("unanswered", set()).add(slip)
            raise
        except Refused as refused:
            if not str(refused).startswith("PreconditionFailed"):
                del sale.notes["requested"][slip], sale.notes["slips"][slip]
                raise
            if slip not in sale.notes.get("unanswered", ()):  # another change to the order
                sale.notes["requested"][slip] = self.call("GET", path.removesuffix("refunds/")).etag
                self.request_refund(sale, slip)
                return
            del sale.notes["requested"][slip]  # an earlier attempt succeeded
            with self.lock:
                sale.notes.setdefault("refunds", {}).setdefault(slip, body["amount"])
                sale.refunded = sum(sale.notes["refunds"].values())
            return
        del sale.notes["requested"][slip]
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
                for slip in list(sale.notes.get("requested", {})):
                    with suppress(Refused):
                        self.request_refund(sale, slip)
