"""A wallet app that scans the code on the payment page."""

from payment_sandbox.methods.base import Capabilities
from payment_sandbox.methods.page import PageMethod


class WalletQr(PageMethod):
    """The scan opens the confirmation in the app (WQR-01)."""

    name = "wallet-qr"
    capabilities = Capabilities(default_expiration="PT30M", brand="wallet-qr", page="scan")
