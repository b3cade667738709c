"""A wallet app; the customer scans the code on the payment page."""

from payment_sandbox.methods.common import PAGE_TRIGGERS, Capabilities, Labels, PageMethod


class WalletQr(PageMethod):
    """A wallet app, in which the customer confirms the payment after the scan (WQR-01)."""

    name = "wallet-qr"
    capabilities = Capabilities(
        labels=Labels(
            "Wallet app, by scanning a code",
            "Wallet-app, met een QR-code",
            "Wallet-App, per QR-Code",
            "Application de portefeuille, par code QR",
        ),
        triggers=PAGE_TRIGGERS,
        icon="wallet",
        hint=Labels(
            "Scan a code with your phone",
            "Scan een code met je telefoon",
            "Code mit dem Handy scannen",
            "Scannez un code avec votre téléphone",
        ),
        default_expiration="PT30M",
        brand="wallet-qr",
        page="scan",
    )
