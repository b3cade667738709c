"""How a refund plays out: the processor settles it at once or later, or it fails."""

from collections.abc import Sequence

from payment_sandbox.methods.base import (
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


class Refund:
    """No method of its own: it goes back by the order's method, whichever that was."""

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
        """The words of an outcome that mean something to this attempt."""
        return self.capabilities.outcomes[0]

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """The order's ledger checks a refund."""
        return []

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Settle at once, or when the scenario says that the processor does (A27)."""
        plan = attempt.plan
        action = Action(
            PROCESSOR, "fail" if plan.get("processor") == "fails" else "settle", reason=plan.get("reason")
        )
        if "after" not in plan:
            return self.finish(attempt, action, terms)
        return [Move(Trigger.START), Later(planned_after(attempt), action)]

    def visit(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """A refund has no page."""
        return []

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Settled, or failed."""
        if action.name == REJECT:
            return [Move(Trigger.FAIL, action.reason or "The account to refund to is closed")]
        return [succeeded(attempt)]

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """The processor acts once."""
        return (SETTLE, REJECT) if attempt.status == TransactionStatus.PROCESSING else ()
