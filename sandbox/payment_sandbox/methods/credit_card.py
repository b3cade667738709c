"""Cards: a sale or an authorization, once or with a stored card."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from payment_sandbox.methods.common import (
    PAGE_KEYS,
    PAGE_TRIGGERS,
    PROCESSOR_KEYS,
    REJECT,
    SETTLE,
    SETTLEMENT_DELAY,
    AttemptDraft,
    Capabilities,
    DetailField,
    Labels,
    Move,
    PageMethod,
    Reveal,
    ScheduleAction,
    Step,
    StoreCard,
    Terms,
    TriggerValue,
    planned_delay,
    success_move,
)
from payment_sandbox.orders.actions import PROCESSOR, Action
from payment_sandbox.orders.cards import CARDS, CONFIGURABLE, FRICTIONLESS, ONE_CLICK, RECURRING
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import TransactionStatus, Trigger
from payment_sandbox.orders.transaction import Transaction

FIRST: Final = "first"
FEATURE_RULES: Final = {
    "dynamic_descriptor": "CARD-09",
    "one_click_type": "FLOW-10",
    "recurring_type": "FLOW-11",
}
APPROVAL: Final = "cards_approved"
NEEDED_FEATURES: Final = {
    "dynamic_descriptor": ("dynamic_descriptor_enabled",),
    "one_click_type": (APPROVAL, "one_click_enabled"),
    "recurring_type": (APPROVAL, "recurring_enabled"),
}
TOKEN_RULES: Final = {ONE_CLICK: "CARD-12", RECURRING: "CARD-13"}
USES_BY_FIELD: Final = {"one_click_type": ONE_CLICK, "recurring_type": RECURRING}


def stored_use(details: Mapping[str, Any]) -> str | None:
    """Return how a payment uses a stored card: one-click, recurring, or None."""
    return next((use for key, use in USES_BY_FIELD.items() if details.get(key) == use), None)


class CreditCard(PageMethod):
    """Payment cards of five families."""

    name = "credit-card"
    capabilities = Capabilities(
        labels=Labels("Card", "Kaart", "Karte", "Carte"),
        triggers=(
            *PAGE_TRIGGERS,
            TriggerValue({"processor": "fails", "reason": "Do not honour"}, amount=66604),
        ),
        details=(
            DetailField(
                "dynamic_descriptor",
                "credit-card: the text on the customer's statement, if enabled for the merchant.",
                "CARD-05",
            ),
            DetailField(
                "one_click_type",
                "credit-card: first stores the card, one-click uses it.",
                "CARD-10",
                (FIRST, ONE_CLICK),
            ),
            DetailField(
                "recurring_type",
                "credit-card: first starts a series, recurring continues it.",
                "CARD-11",
                (FIRST, RECURRING),
            ),
            DetailField("vault_token", "credit-card: the card stored by a first payment.", "CARD-12"),
            DetailField(
                "cvc",
                "credit-card: required for one-click.",
                "CARD-14",
                pattern="[0-9]{3,4}",
                expected="three or four digits",
            ),
        ),
        icon="card",
        hint=Labels(
            "Visa, Mastercard and others",
            "Visa, Mastercard en andere",
            "Visa, Mastercard und andere",
            "Visa, Mastercard et d'autres",
        ),
        default_expiration="PT30M",
        authorizes=True,
        brand="card",
        page="card",
        needs_feature="cards_approved",
        outcomes=(PAGE_KEYS | {"card"}, PROCESSOR_KEYS),
    )

    def outcome_keys(self, attempt: Transaction) -> frozenset[str]:
        """Return the outcome keys that apply to this attempt."""
        by_customer, stored = self.capabilities.outcomes
        return by_customer if stored_use(attempt.asked) is None else stored

    def check(self, draft: AttemptDraft, terms: Terms) -> list[Violation]:
        """Check the required features, and the fields of a stored card (CARD-09 to CARD-14)."""
        details, path = draft.details, f"{draft.path}.payment_method_details"
        violations = self._feature_violations(details, path, f"{draft.path}.payment_method", terms)
        if "one_click_type" in details and "recurring_type" in details:
            problem = "cannot be combined with one_click_type"
            violations.append(Violation(f"{path}.recurring_type", problem, rule="CARD-11"))
            return violations
        use = stored_use(details)
        if use is not None:
            violations += self._card_violations(use, draft, path, terms)
        elif "vault_token" in details:
            problem = "is only allowed with one_click_type one-click or recurring_type recurring"
            violations.append(Violation(f"{path}.vault_token", problem, rule="CARD-12"))
        return violations

    def _feature_violations(
        self, details: Mapping[str, Any], path: str, method_path: str, terms: Terms
    ) -> list[Violation]:
        refused = []
        if APPROVAL not in terms.features:
            problem = f"this merchant is not approved for cards: {APPROVAL} is off"
            refused.append(Violation(method_path, problem, rule="CTL-03"))
        for key, features in NEEDED_FEATURES.items() if details else ():
            for feature in features:
                if key in details and feature not in terms.features:
                    problem = f"is not enabled for this merchant: {feature} is off"
                    refused.append(Violation(f"{path}.{key}", problem, rule=FEATURE_RULES[key]))
        return refused

    def _card_violations(self, use: str, draft: AttemptDraft, path: str, terms: Terms) -> list[Violation]:
        violations = []
        if use == ONE_CLICK and "cvc" not in draft.details:
            problem = "is required for every one-click payment"
            violations.append(Violation(f"{path}.cvc", problem, rule="CARD-14"))
        token = draft.details.get("vault_token")
        if token is None:
            problem = f"is required for a {use} payment"
            violations.append(Violation(f"{path}.vault_token", problem, rule=TOKEN_RULES[use]))
            return violations
        credential = terms.find_credential(token)
        if credential is None or credential.use != use:
            problem = f"is not the token of a first {use} payment in this project"
            violations.append(Violation(f"{path}.vault_token", problem, rule=TOKEN_RULES[use]))
        elif use == RECURRING and draft.amount_cents not in (None, credential.amount_cents):
            violations.append(
                Violation(
                    "amount",
                    f"is {draft.amount_cents}, but every payment of this recurring series has the amount of "
                    f"its first, {credential.amount_cents}",
                    [str(credential.amount_cents)],
                    rule="LIM-07",
                )
            )
        return violations

    def begin(self, attempt: Transaction, terms: Terms) -> Sequence[Step]:
        """Open the page, or charge a stored card without the customer (STA-11, STA-12)."""
        use = stored_use(attempt.asked)
        shown = {k: v for k, v in attempt.asked.items() if k in (*USES_BY_FIELD, "dynamic_descriptor")}
        if use is None:
            return [Reveal(shown), *super().begin(attempt, terms)]
        credential = terms.find_credential(attempt.asked["vault_token"])
        assert credential is not None, "``check`` has verified the token"
        credential.refuse_expired(terms.now)
        first = {"first_authorised_transaction_id": credential.first_transaction_id}
        # Without the customer there is no authentication, so the merchant keeps the liability.
        card = {**shown, **credential.card, "liability_shift": False, **first}
        name = "fail" if attempt.plan.get("processor") == "fails" else "settle"
        action = Action(PROCESSOR, name, reason=attempt.plan.get("reason"))
        if use == ONE_CLICK and "after" not in attempt.plan:
            return [Reveal(card, credential.brand), *self.finish(attempt, action, terms)]
        scheduled = ScheduleAction(planned_delay(attempt, SETTLEMENT_DELAY), action)
        return [Reveal(card, credential.brand), Move(Trigger.START), scheduled]

    def finish(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Settle or reject a charge to a stored card, or handle an action by the customer."""
        if action.name == REJECT:
            return [Move(Trigger.FAIL, action.reason or "The stored card was declined")]
        if action.name == SETTLE:
            return [success_move(attempt)]
        return super().finish(attempt, action, terms)

    def payment_steps(self, attempt: Transaction, action: Action, terms: Terms) -> Sequence[Step]:
        """Reveal the card; a first payment also stores it (CARD-20)."""
        card = CARDS[action.card or FRICTIONLESS]
        revealed = Reveal(card.details, card.family)
        if card.refusal is not None:
            return [revealed, Move(Trigger.FAIL, action.reason or card.refusal)]
        uses = [use for key, use in USES_BY_FIELD.items() if attempt.asked.get(key) == FIRST]
        stored = [StoreCard(use, card.family, card.details) for use in uses[:1]]
        return [revealed, *stored, success_move(attempt)]

    def default_failure_reason(self, action: Action) -> str:
        """Return the default reason: a failed challenge for the configurable card, otherwise a decline."""
        return "3-D Secure: not authenticated" if action.card == CONFIGURABLE else "Do not honour"

    def actions(self, attempt: Transaction, terms: Terms) -> Sequence[str]:
        """Return the processor's actions on a stored card, or the customer's on any other card."""
        if stored_use(attempt.asked) is None:
            return super().actions(attempt, terms)
        return (SETTLE, REJECT) if attempt.status == TransactionStatus.PROCESSING else ()
