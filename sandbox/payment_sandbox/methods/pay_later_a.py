"""Pay later: after a screening, the customer authorizes the payment on a page."""

from collections.abc import Sequence
from typing import Final

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods.common import (
    APPROVE,
    DECLINE,
    DECLINE_TRIGGERS,
    NO_DELAY,
    PAGE_KEYS,
    PAGE_TRIGGERS,
    SCREENING_ERROR,
    Capabilities,
    Labels,
    Move,
    OpenPage,
    PageMethod,
    ScheduleAction,
    Step,
    Terms,
    TriggerValue,
    decline_move,
    error_move,
    planned_delay,
)
from payment_sandbox.orders.actions import SCREENING, Action
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

SCREENING_DELAY: Final = "PT10M"
ACTIONS_BY_RESULT: Final = {"passed": "approve", "declined": "decline", "error": "error"}


class PayLaterA(PageMethod):
    """Payment after delivery; the screening at creation can take time (STA-13 to STA-15, SET-37)."""

    name = "pay-later-a"
    capabilities = Capabilities(
        labels=Labels("Pay later", "Achteraf betalen", "Später bezahlen", "Payer plus tard"),
        triggers=(
            *DECLINE_TRIGGERS,
            TriggerValue({"screening": "needs-time"}, "needs-time"),
            TriggerValue({"screening": "needs-time", "then": "declined"}, "needs-time-declined"),
            TriggerValue({"screening": "error"}, "error"),
            TriggerValue({"screening": "needs-time"}, amount=66602),
            TriggerValue({"screening": "error"}, amount=66603),
            *PAGE_TRIGGERS,
        ),
        icon="later",
        hint=Labels(
            "Within 30 days of delivery",
            "Binnen 30 dagen na levering",
            "Binnen 30 Tagen nach Lieferung",
            "Dans les 30 jours suivant la livraison",
        ),
        default_expiration="PT48H",
        needs_order_lines=True,
        requirement_rules=(("order_lines", "PLA-01"),),
        authorizes=True,
        default_capture_mode="manual",
        brand="pay-later-a",
        page="terms",
        outcomes=(PAGE_KEYS | {"screening", "then"},),
    )

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Screen the customer."""
        screening, reason = attempt.plan.get("screening", "passed"), attempt.plan.get("reason")
        if screening == "declined":
            return [decline_move(reason)]
        if screening == "error":
            return [error_move(reason)]
        if screening == "needs-time":
            answer = ACTIONS_BY_RESULT[attempt.plan.get("then", "passed")]
            after = planned_delay(attempt, SCREENING_DELAY)
            return [Move(Trigger.PEND), ScheduleAction(after, Action(SCREENING, answer, reason=reason))]
        return super().begin(attempt, terms)

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Handle the result of the screening, or an action by the customer."""
        if action.name == APPROVE:
            return [Move(Trigger.PASS), OpenPage(), *self.planned_steps(attempt, Period.parse(NO_DELAY))]
        if action.name == DECLINE:
            return [decline_move(action.reason)]
        if action.name == SCREENING_ERROR:
            return [error_move(action.reason)]
        return super().finish(attempt, action, terms)

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the screening's actions while it is pending, then the customer's."""
        if attempt.status == TransactionStatus.PENDING:
            return (APPROVE, DECLINE, SCREENING_ERROR)
        return super().actions(attempt, terms)
