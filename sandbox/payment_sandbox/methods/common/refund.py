"""Refunds: the processor settles them at once or later, or they fail."""

from collections.abc import Sequence
from typing import Final

from payment_sandbox.methods.common.base import (
    PROCESSOR_KEYS,
    REJECT,
    SETTLE,
    AttemptDraft,
    Capabilities,
    Labels,
    Later,
    Move,
    Step,
    Terms,
    TriggerValue,
    planned_after,
    succeeded,
)
from payment_sandbox.orders.actions import PROCESSOR, Action
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

SETTLES_AFTER: Final = "PT1M"


class Refund:
    """Not a payment method: the money goes back by the order's own method."""

    name = "refund"
    capabilities = Capabilities(
        labels=Labels("Refund", "Terugbetaling", "Erstattung", "Remboursement"),
        default_expiration="P30D",
        brand="refund",
        outcomes=(PROCESSOR_KEYS,),
        triggers=(
            TriggerValue(
                {"processor": "fails", "after": "PT1M", "reason": "The account to refund to is closed"},
                amount=66605,
            ),
        ),
    )

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """The outcome keys that apply to this attempt."""
        return self.capabilities.outcomes[0]

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Nothing to check here: the order's ledger checks refunds."""
        return []

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Settle at once, or when the scenario or the setting ``refund_status`` says so (A27)."""
        plan = attempt.plan
        action = Action(
            PROCESSOR, "fail" if plan.get("processor") == "fails" else "settle", reason=plan.get("reason")
        )
        is_slow = terms.refund_status == TransactionStatus.PROCESSING
        if "after" not in plan and not is_slow:
            return self.finish(attempt, action, terms)
        return [Move(Trigger.START), Later(planned_after(attempt, SETTLES_AFTER), action)]

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """A refund has no page."""
        return []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Settle or fail."""
        if action.name == REJECT:
            return [Move(Trigger.FAIL, action.reason or "The account to refund to is closed")]
        return [succeeded(attempt)]

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """The processor acts once."""
        return (SETTLE, REJECT) if attempt.status == TransactionStatus.PROCESSING else ()
