"""Online banking by login and confirmation."""

from payment_sandbox.methods.common import PAGE_TRIGGERS, Capabilities, Labels, PageMethod


class BankRedirectDe(PageMethod):
    """German online banking: the customer logs in and confirms the payment (BRD-01)."""

    name = "bank-redirect-de"
    capabilities = Capabilities(
        labels=Labels(
            "Online banking, Germany",
            "Internetbankieren, Duitsland",
            "Online-Banking, Deutschland",
            "Banque en ligne, Allemagne",
        ),
        bank=Labels("your German bank", "je Duitse bank", "Ihrer deutschen Bank", "votre banque allemande"),
        triggers=PAGE_TRIGGERS,
        hint=Labels(
            "With your German bank",
            "Met je Duitse bank",
            "Mit Ihrer deutschen Bank",
            "Avec votre banque allemande",
        ),
        default_expiration="PT60M",
        brand="bank-redirect-de",
    )
