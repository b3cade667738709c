"""Online banking, confirmed at the customer's bank."""

from payment_sandbox.methods.common import PAGE_TRIGGERS, Capabilities, Labels, PageMethod


class BankRedirectBe(PageMethod):
    """Belgian online banking, available in live mode only (BRB-01)."""

    name = "bank-redirect-be"
    capabilities = Capabilities(
        labels=Labels(
            "Online banking, Belgium",
            "Internetbankieren, België",
            "Online-Banking, Belgien",
            "Banque en ligne, Belgique",
        ),
        bank=Labels("your Belgian bank", "je Belgische bank", "Ihrer belgischen Bank", "votre banque belge"),
        triggers=PAGE_TRIGGERS,
        hint=Labels(
            "With your Belgian bank",
            "Met je Belgische bank",
            "Mit Ihrer belgischen Bank",
            "Avec votre banque belge",
        ),
        default_expiration="PT60M",
        testable=False,
        brand="bank-redirect-be",
    )
