"""The shop."""

from frame import Refused, Storefront


class Shop(Storefront):
    """Takes card payments."""

    def checkout(self, sale):
        """Create the payment order; return the address of its page."""
        raise NotImplementedError

    def webhook(self, order_id):
        """Handle a webhook."""
        raise NotImplementedError

    def thanks(self, order_id):
        """Answer a customer who comes back: Thank you! or We are waiting for your payment."""
        raise NotImplementedError

    def look_at_open_sales(self):
        """The hourly job."""
        raise NotImplementedError

    def ship(self, sale, amount, parcel):
        with self.desk:
            if not sale.paid or sale.shipped:
                raise Refused("not paid, or shipped before")
            sale.shipped = amount
        return "shipped"
