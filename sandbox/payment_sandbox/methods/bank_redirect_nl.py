"""Online banking; the customer chooses a bank first."""

from collections.abc import Sequence

from payment_sandbox.methods.common import (
    PAGE_TRIGGERS,
    PAYMENT_PAGE,
    AttemptDraft,
    Capabilities,
    DetailField,
    Labels,
    Move,
    PageMethod,
    Reveal,
    Step,
    Terms,
    payer,
    success_move,
)
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.transaction import Transaction


class BankRedirectNl(PageMethod):
    """Dutch online banking: the customer confirms the payment at the issuer in the request (IDR-01)."""

    name = "bank-redirect-nl"
    capabilities = Capabilities(
        labels=Labels(
            "Online banking, Netherlands",
            "Internetbankieren, Nederland",
            "Online-Banking, Niederlande",
            "Banque en ligne, Pays-Bas",
        ),
        triggers=PAGE_TRIGGERS,
        has_issuers=True,
        pays_bank_qr=True,
        details=(
            DetailField(
                "issuer_id",
                "bank-redirect-nl: the bank, from the issuers list.",
                "IDR-06",
                label=Labels(
                    "Choose your bank", "Kies je bank", "Wählen Sie Ihre Bank", "Choisissez votre banque"
                ),
            ),
        ),
        hint=Labels(
            "Choose your bank next",
            "Kies daarna je bank",
            "Danach die Bank wählen",
            "Choisissez ensuite votre banque",
        ),
        default_expiration="PT60M",
        brand="bank-redirect-nl",
    )

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Require an issuer from the list (IDR-01, IDR-06)."""
        issuer_id = draft.details.get("issuer_id")
        known = [issuer.id for issuer in terms.banks or ()]
        if issuer_id in known or not (
            terms.issuer_required if issuer_id is None else terms.banks is not None
        ):
            return []
        path = f"{draft.path}.payment_method_details.issuer_id"
        if issuer_id is None:
            return [Violation(path, "is required for bank-redirect-nl", known, rule="IDR-01")]
        return [Violation(path, "is not in the issuers list", known, rule="IDR-06")]

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Reveal the bank and the URL where the customer authenticates."""
        details = {
            **attempt.asked,
            "issuer_authentication_url": PAYMENT_PAGE,
            "status": "Open",
            "transaction_id": "0" + terms.ids.digits("bank-transaction", 15),
        }
        return [Reveal(details), *super().begin(attempt, terms)]

    def payment_steps(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Reveal the payer, as reported by the bank (IDR-04) in the request or on the page."""
        banks = terms.banks or ()
        issuer_id = attempt.asked.get("issuer_id") or action.issuer_id or banks[0].id
        details = {**payer(issuer_id, terms.ids), "consumer_city": "Utrecht", "status": "Success"}
        return [Reveal({"issuer_id": issuer_id, **details}), success_move(attempt)]

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Update the bank's own status along with the attempt's."""
        steps = super().finish(attempt, action, terms)
        ended = {"fail": "Failure", "cancel": "Cancelled"}.get(action.action)
        return [Reveal({"status": ended}), *steps] if ended and isinstance(steps[0], Move) else steps
