"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Takes card payments, and lets customers try again."""

    def pay(self, sale):
        """Let the customer try again; return the URL of the payment page."""
        raise NotImplementedError
