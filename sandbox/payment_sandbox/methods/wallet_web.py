"""A web wallet: login and confirmation."""

from payment_sandbox.methods.common import PAGE_TRIGGERS, Capabilities, Labels, PageMethod


class WalletWeb(PageMethod):
    """A web wallet: the customer logs in and confirms the payment (WWEB-01)."""

    name = "wallet-web"
    capabilities = Capabilities(
        labels=Labels("Web wallet", "Webwallet", "Web-Wallet", "Portefeuille en ligne"),
        triggers=PAGE_TRIGGERS,
        icon="wallet",
        hint=Labels(
            "Log in to your wallet",
            "Log in bij je wallet",
            "Bei Ihrer Wallet anmelden",
            "Connectez-vous à votre portefeuille",
        ),
        default_expiration="PT30M",
        brand="wallet-web",
    )
