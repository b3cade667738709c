"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Takes bank transfers."""

    def transaction(self, sale):
        """Return the transaction of the payment order."""
        raise NotImplementedError

    def is_settled(self, sale):
        """Return whether the payment of a sale is final."""
        raise NotImplementedError

    def ship(self, sale, amount, parcel):
        """Ship the goods."""
        raise NotImplementedError
