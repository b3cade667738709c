"""The shop."""

from frame import Refused, Storefront


class Shop(Storefront):
    """Takes card payments."""

    def checkout(self, sale):
        """Create the payment order; return the URL of its payment page."""
        raise NotImplementedError

    def webhook(self, order_id):
        """Handle a webhook."""
        raise NotImplementedError

    def thanks(self, order_id):
        """Return the text for a returning customer: Thank you! or We are waiting for your payment."""
        raise NotImplementedError

    def look_at_open_sales(self):
        """Run the hourly job: read the orders of open sales."""
        raise NotImplementedError

    def ship(self, sale, amount, parcel):
        with self.desk:
            if not sale.paid or sale.shipped:
                raise Refused("not paid, or shipped before")
            sale.shipped = amount
        return "shipped"
