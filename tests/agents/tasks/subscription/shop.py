"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Charges every month."""

    def transaction(self, sale):
        """How the customer pays, or is charged."""
        raise NotImplementedError

    def charge(self, sale):
        """Charge one more month of the series that began with this sale."""
        raise NotImplementedError
