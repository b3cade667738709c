"""Methods with a page where the customer pays, cancels or fails."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods.common.base import (
    CANCEL,
    FAIL,
    PAY,
    VISIT,
    AttemptDraft,
    Capabilities,
    Labels,
    Later,
    Move,
    OpenPage,
    Reveal,
    Step,
    Terms,
    TriggerValue,
    planned_after,
    succeeded,
)
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

CUSTOMER_MESSAGE: Final = "The payment failed. Please try again or choose another payment method."

CARD_IN_PHONE: Final = Labels(
    "The card in your phone",
    "De kaart in je telefoon",
    "Die Karte in deinem Handy",
    "La carte de votre téléphone",
)

PAGE_TRIGGERS: Final = (
    TriggerValue({"customer": "pays", "after": "PT10S"}, "pays"),
    TriggerValue({"customer": "fails", "after": "PT10S", "reason": "Do not honour"}, "fails"),
    TriggerValue({"customer": "cancels", "after": "PT10S"}, "cancels"),
)
PLANNED_ACTIONS: Final = {"pays": "pay", "fails": "fail", "cancels": "cancel", "abandons": "visit"}


class PageMethod:
    """The shared behaviour of all methods with a page."""

    name: str
    capabilities: Capabilities

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """The outcome keys that apply to this attempt."""
        return self.capabilities.outcomes[0]

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Nothing to check beyond the form."""
        return []

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Open the page; the scenario may send the customer there."""
        return [OpenPage(), *self.planned(attempt, planned_after(attempt))]

    def planned(self, attempt: Transaction, after: Period) -> Sequence[Step]:
        """The customer's automatic action, as planned by the scenario."""
        action = PLANNED_ACTIONS.get(attempt.plan.get("customer", "waits"))
        if action is None:
            return []
        plan = attempt.plan
        return [
            Later(
                after,
                Action(
                    CUSTOMER,
                    action,
                    reason=plan.get("reason"),
                    card=plan.get("card"),
                    authorization=plan.get("authorization"),
                ),
            )
        ]

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """The first visit starts the payment; later visits change nothing (SET-36)."""
        return [Move(Trigger.VISIT)] if attempt.status == TransactionStatus.NEW else []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Pay, fail or cancel."""
        if action.name == PAY:
            return self.paid(attempt, action, terms)
        if action.name == FAIL:
            return [Move(Trigger.FAIL, action.reason or self.failure(action), CUSTOMER_MESSAGE)]
        return [Move(Trigger.CANCEL, action.reason or "Cancelled by the customer")]

    def paid(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Reveal the payment details, and complete or authorize the attempt."""
        revealed = self.revealed(attempt, terms)
        return [Reveal(revealed), succeeded(attempt)] if revealed else [succeeded(attempt)]

    def revealed(self, attempt: Transaction, terms: Terms) -> Mapping[str, Any]:
        """The details that a payment reveals."""
        return {}

    def failure(self, action: Action) -> str:
        """The reason for a failure if the action gives none."""
        return "The payment was refused"

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """The customer can act until the attempt ends."""
        if attempt.status in (TransactionStatus.NEW, TransactionStatus.PROCESSING):
            return (VISIT, PAY, CANCEL, FAIL)
        return ()
