"""Payment by invoice: screened at creation, captured by the merchant when the goods ship."""

from collections.abc import Sequence

from payment_sandbox.methods.common import (
    DECLINE_TRIGGERS,
    Capabilities,
    Labels,
    Method,
    Move,
    OpenPage,
    Step,
    Terms,
    decline_move,
)
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.orders.transaction import Transaction


class InvoiceLaterB(Method):
    """An invoice, accepted or declined at creation without the customer (STA-16, STA-17)."""

    name = "invoice-later-b"
    capabilities = Capabilities(
        labels=Labels("Pay by invoice", "Betalen op factuur", "Auf Rechnung bezahlen", "Payer sur facture"),
        triggers=DECLINE_TRIGGERS,
        icon="later",
        hint=Labels(
            "Within 14 days, by invoice",
            "Binnen 14 dagen, op factuur",
            "Binnen 14 Tagen, auf Rechnung",
            "Sous 14 jours, sur facture",
        ),
        default_expiration="P30D",
        needs_order_lines=True,
        needs_customer=True,
        requirement_rules=(("order_lines", "INV-01"), ("customer", "INV-02")),
        refunds_by_lines=True,
        authorizes=True,
        default_capture_mode="manual",
        brand="invoice-later-b",
        page="invoice",
        screenings=("passed", "declined"),
        outcomes=(frozenset({"screening", "reason"}),),
    )

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Screen the customer; passing authorizes the payment."""
        if attempt.plan.get("screening") == "declined":
            return [decline_move(attempt.plan.get("reason"))]
        return [OpenPage(), Move(Trigger.ACCEPT)]
