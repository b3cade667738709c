"""A scenario: the first rule that matches an attempt decides its outcome."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, NamedTuple

from sandbox.orders.amounts import Cents


class AmountRange(NamedTuple):
    """Whole cents between bounds, each of which may be open."""

    gte: Cents | None = None
    gt: Cents | None = None
    lte: Cents | None = None
    lt: Cents | None = None

    def holds(self, amount_cents: Cents) -> bool:
        """Whether the amount is within all bounds given."""
        return (
            (self.gte is None or amount_cents >= self.gte)
            and (self.gt is None or amount_cents > self.gt)
            and (self.lte is None or amount_cents <= self.lte)
            and (self.lt is None or amount_cents < self.lt)
        )


class Subject(NamedTuple):
    """What a rule looks at: one attempt about to begin, or one refund."""

    methods: frozenset[str]  # the identifier, and the merchant's alias for it
    amount_cents: Cents
    customer: Mapping[str, Any]
    merchant_order_id: str | None
    attempt: int
    is_refund: bool
    outcome_keys: frozenset[str]


class When(NamedTuple):
    """Conditions that must all hold; None means any."""

    payment_methods: frozenset[str] | None = None
    amount: AmountRange | None = None
    customer: Mapping[str, str] = MappingProxyType({})
    merchant_order_id: str | None = None
    attempt: int | None = None
    refund: bool = False

    def holds(self, subject: Subject) -> bool:
        """Whether every condition holds (SCN-02 to SCN-04)."""
        return (
            self.refund == subject.is_refund
            and (self.payment_methods is None or bool(self.payment_methods & subject.methods))
            and (self.amount is None or self.amount.holds(subject.amount_cents))
            and (self.attempt is None or self.attempt == subject.attempt)
            and (
                self.merchant_order_id is None
                or fnmatchcase(subject.merchant_order_id or "", self.merchant_order_id)
            )
            and all(
                fnmatchcase(str(subject.customer.get(key, "")), glob) for key, glob in self.customer.items()
            )
        )


class Rule(NamedTuple):
    """What happens to the attempts it matches; spent after ``times`` uses."""

    when: When
    then: Mapping[str, Any]
    times: int | None = None

    def matches(self, subject: Subject, used: int) -> bool:
        """Whether it decides this attempt: it matches, is not spent, and says something that can be done."""
        return (
            (self.times is None or used < self.times)
            and not self.then.keys().isdisjoint(subject.outcome_keys)
            and self.when.holds(subject)
        )


class WebhookRule(NamedTuple):
    """How a delivery fares, by the order's status and the number of the attempt."""

    then: Mapping[str, Any]
    status: str | None = None
    attempt: int | None = None

    def holds(self, status: str, attempt: int) -> bool:
        """Whether it decides this attempt of a delivery."""
        return self.status in (None, status) and self.attempt in (None, attempt)


class Scenario(NamedTuple):
    """A whole scenario; ``document`` is what it was read from."""

    name: str
    document: Mapping[str, Any]
    description: str = ""
    settings: Mapping[str, Any] = MappingProxyType({})
    rules: Sequence[Rule] = ()
    webhooks: Sequence[WebhookRule] = ()

    def decide(self, subject: Subject, uses: Mapping[int, int]) -> tuple[int | None, Mapping[str, Any]]:
        """The index of the rule that decides an attempt, and the outcome as plain data.

        ``uses`` says how often each rule has decided. No rule: None and an empty outcome, everybody waits.
        """
        for index, rule in enumerate(self.rules):
            if rule.matches(subject, uses.get(index, 0)):
                return index, {key: rule.then[key] for key in rule.then if key in subject.outcome_keys}
        return None, {}

    def webhook(self, status: str, attempt: int) -> Mapping[str, Any]:
        """How this attempt of a delivery fares; empty: it goes to the merchant."""
        for rule in self.webhooks:
            if rule.holds(status, attempt):
                return rule.then
        return {}
