"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Captures parcel by parcel."""

    def transaction(self, sale):
        return {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P14D"}

    def ship(self, sale, amount, parcel):
        """Capture the price of a parcel, and hand it over."""
        raise NotImplementedError

    def is_settled(self, sale):
        return sale.shipped == sale.amount or sale.cancelled
