"""The shop."""

from cards import CardShop


class Shop(CardShop):
    """Takes bank transfers."""

    def transaction(self, sale):
        """How the customer pays."""
        raise NotImplementedError

    def is_settled(self, sale):
        """Whether nothing more can happen to the payment of a sale."""
        raise NotImplementedError

    def ship(self, sale, amount, parcel):
        """Hand over the goods."""
        raise NotImplementedError
