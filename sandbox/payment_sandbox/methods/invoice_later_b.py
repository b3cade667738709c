"""Payment by invoice: a screening decides at creation, the merchant captures on shipping."""

from collections.abc import Sequence

from payment_sandbox.methods.base import (
    AttemptDraft,
    Capabilities,
    Labels,
    Move,
    OpenPage,
    Step,
    Terms,
)
from payment_sandbox.methods.screening import DECLINES, declined
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.orders.transaction import Transaction


class InvoiceLaterB:
    """Accepted or cancelled at once (STA-16, STA-17); the customer has nothing to do."""

    name = "invoice-later-b"
    capabilities = Capabilities(
        labels=Labels("Pay by invoice", "Betalen op factuur", "Auf Rechnung bezahlen", "Payer sur facture"),
        triggers=DECLINES,
        default_expiration="P30D",
        needs_order_lines=True,
        needs_customer=True,
        refunds_by_lines=True,
        authorizes=True,
        default_capture_mode="manual",
        brand="invoice-later-b",
        page="invoice",
        screenings=("passed", "declined"),
        outcomes=(frozenset({"screening", "reason"}),),
    )

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """The words of an outcome that mean something to this attempt."""
        return self.capabilities.outcomes[0]

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Nothing to check beyond lines and customer, which the capabilities ask for."""
        return []

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Screen the customer; a pass authorizes."""
        if attempt.plan.get("screening") == "declined":
            return [declined(attempt.plan.get("reason"))]
        return [OpenPage(), Move(Trigger.ACCEPT)]

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """The page only tells what happens next."""
        return []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Nobody acts, so nothing follows."""
        return []

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Nobody has anything to do."""
        return ()
