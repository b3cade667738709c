"""The shop."""

from cards import CardShop
from frame import URL


class Shop(CardShop):
    """Takes card payments, and lets customers try again."""

    def pay(self, sale):
        with self.desk:
            if sale.paid:
                return f"{URL}/thanks?order_id={sale.orders[-1]}"
            return self.checkout(sale)  # the earlier order expires by itself
