"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Charges every month."""

    def transaction(self, sale):
        """Return the transaction of the payment order: the first, or a recurring charge."""
        raise NotImplementedError

    def charge(self, sale):
        """Charge one more month of the subscription that began with this sale."""
        raise NotImplementedError
