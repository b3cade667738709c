"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Takes goods back."""

    def take_back(self, sale, amount, slip):
        """Refund goods that came back with this slip."""
        raise NotImplementedError

    def note_refund(self, refund):
        """Note what a refund says: an order of its own."""
        raise NotImplementedError
