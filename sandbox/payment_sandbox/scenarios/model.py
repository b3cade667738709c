"""A scenario: its first matching rule decides the outcome of an attempt."""

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, NotRequired, TypedDict

from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.effects import Fault, WebhookEffect

ACTOR_KEYS: Final = ("customer", "credit", "screening", "processor")
"""The keys of an outcome that name an actor; all other keys are details."""
NO_SPENT_RULES: Final[frozenset[int]] = frozenset()


class AmountRange(NamedTuple):
    """A range of cents with optional bounds."""

    gte: Cents | None = None
    gt: Cents | None = None
    lte: Cents | None = None
    lt: Cents | None = None

    @property
    def document(self) -> Any:
        """The condition as written: one number for an exact amount, otherwise the bounds."""
        bounds = {name: bound for name, bound in self._asdict().items() if bound is not None}
        is_exact = bounds.keys() == {"gte", "lte"} and self.gte == self.lte
        return self.gte if is_exact else bounds

    def holds(self, amount_cents: Cents) -> bool:
        """Whether the amount is within the bounds."""
        return (
            (self.gte is None or amount_cents >= self.gte)
            and (self.gt is None or amount_cents > self.gt)
            and (self.lte is None or amount_cents <= self.lte)
            and (self.lt is None or amount_cents < self.lt)
        )


def matches_glob(value: Any, glob: str) -> bool:
    """Whether a value matches a glob; None counts as an empty string."""
    return fnmatchcase("" if value is None else str(value), glob)


class Difference(TypedDict):
    """A condition of a rule that an attempt does not meet."""

    condition: str
    expected: Any
    actual: Any


class NearestRule(TypedDict):
    """The closest rule that did not match."""

    rule: int
    differs: list[Difference]


class Decision(TypedDict):
    """A scenario's decision for an attempt."""

    scenario: str
    rule: Annotated[int | None, "The index of the matching rule."]
    nearest: NotRequired[NearestRule | None]


class TransactionDecision(Decision):
    """A scenario's decision for one of an order's attempts."""

    transaction_id: str


class Subject(NamedTuple):
    """An attempt or refund before its start, to match rules against."""

    methods: frozenset[str]  # the identifier, and the merchant's alias for it
    amount_cents: Cents
    customer: Mapping[str, Any]
    merchant_order_id: str | None
    attempt: int
    is_refund: bool
    outcome_keys: frozenset[str]
    screenings: tuple[str, ...] = ()  # the possible results of its screening


class When(NamedTuple):
    """Conditions that must all be true; None means any."""

    payment_methods: frozenset[str] | None = None
    amount: AmountRange | None = None
    customer: Mapping[str, str] = MappingProxyType({})
    merchant_order_id: str | None = None
    attempt: int | None = None
    refund: bool = False

    def holds(self, subject: Subject) -> bool:
        """Whether every condition is true (SCN-02 to SCN-04); faster than ``unmet_conditions``."""
        return (
            self.refund == subject.is_refund  # these three exclude most rules
            and (self.payment_methods is None or not self.payment_methods.isdisjoint(subject.methods))
            and (self.amount is None or self.amount.holds(subject.amount_cents))
            and self.attempt in (None, subject.attempt)
            and all(map(matches_glob, map(subject.customer.get, self.customer), self.customer.values()))
            and (
                self.merchant_order_id is None
                or matches_glob(subject.merchant_order_id, self.merchant_order_id)
            )
        )

    def unmet_conditions(self, subject: Subject) -> "Iterator[Difference]":
        """Yield every condition that the subject does not meet."""
        if self.refund != subject.is_refund:
            yield Difference(condition="refund", expected=self.refund, actual=subject.is_refund)
        if self.payment_methods is not None and self.payment_methods.isdisjoint(subject.methods):
            yield Difference(
                condition="payment_method",
                expected=sorted(self.payment_methods),
                actual=sorted(subject.methods),
            )
        if self.amount is not None and not self.amount.holds(subject.amount_cents):
            yield Difference(condition="amount", expected=self.amount.document, actual=subject.amount_cents)
        if self.attempt not in (None, subject.attempt):
            yield Difference(condition="attempt", expected=self.attempt, actual=subject.attempt)
        for key, glob in self.customer.items():
            value = subject.customer.get(key)
            if not matches_glob(value, glob):
                yield Difference(condition=f"customer.{key}", expected=glob, actual=value)
        glob_of_id = self.merchant_order_id
        if glob_of_id is not None and not matches_glob(subject.merchant_order_id, glob_of_id):
            yield Difference(
                condition="merchant_order_id", expected=glob_of_id, actual=subject.merchant_order_id
            )


def outcome_applies(then: Mapping[str, Any], words: frozenset[str], screenings: Sequence[str]) -> bool:
    """Whether an outcome has an actor of the attempt and, for a screening, a possible result."""
    return any(
        actor in then and actor in words and (actor != "screening" or then[actor] in screenings)
        for actor in ACTOR_KEYS
    )


class ScenarioRule(NamedTuple):
    """A rule with the outcome of matching attempts; spent after ``times`` uses."""

    when: When
    then: Mapping[str, Any]
    times: int | None = None


class WebhookRule(NamedTuple):
    """An effect on delivery attempts, selected by order, order status and attempt number."""

    effect: WebhookEffect
    status: str | None = None
    attempt: int | None = None
    order_id: str | None = None  # outside scenarios only; removed when the order ends

    def holds(self, delivery: Delivery) -> bool:
        """Whether the rule decides the next attempt of a delivery."""
        return (
            self.status in (None, delivery.status)
            and self.order_id in (None, delivery.order_id)
            and self.attempt in (None, delivery.next_number)
        )


class FaultRule(NamedTuple):
    """A fault of the requests that match method and path: all, or only the nth."""

    fault: Fault
    method: str | None = None
    path: str | None = None  # a glob; a trailing slash makes no difference
    nth: frozenset[int] | None = None

    def matches(self, method: str, path: str) -> bool:
        """Whether method and path match; whether the fault applies also depends on earlier requests."""
        return (self.method is None or self.method == method) and (
            self.path is None or fnmatchcase(path.rstrip("/"), self.path.rstrip("/"))
        )


class Scenario(NamedTuple):
    """A whole scenario; ``document`` is its source."""

    name: str
    document: Mapping[str, Any]
    description: str = ""
    settings: Mapping[str, Any] = MappingProxyType({})
    rules: Sequence[ScenarioRule] = ()
    webhooks: Sequence[WebhookRule] = ()
    faults: Sequence[FaultRule] = ()
    is_inline: bool = False  # whether a test has sent the scenario, not a file

    def decide(self, subject: Subject, uses: Mapping[int, int]) -> "ScenarioDecision":
        """Decide an attempt by the first matching rule; ``uses`` counts the uses of each rule."""
        for index, rule in enumerate(self.rules):
            named = rule.when.payment_methods
            if named is not None and named.isdisjoint(subject.methods):
                continue  # most rules of the default scenario name other methods
            is_spent = rule.times is not None and uses.get(index, 0) >= rule.times
            if is_spent or not rule.when.holds(subject):
                continue
            if outcome_applies(rule.then, subject.outcome_keys, subject.screenings):
                return ScenarioDecision(self, subject, index)
        spent = {index for index, used in uses.items() if used == self.rules[index].times}
        return ScenarioDecision(self, subject, None, frozenset(spent) if spent else NO_SPENT_RULES)


class ScenarioDecision(NamedTuple):
    """A scenario's decision on an attempt: the index of the rule, or None if none matched."""

    scenario: Scenario
    subject: Subject
    rule: int | None
    spent: frozenset[int] = NO_SPENT_RULES  # spent rules; recorded only if no rule matched

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The outcome as plain data; empty if no rule matched, so that all actors wait."""
        if self.rule is None:
            return {}
        then = self.scenario.rules[self.rule].then
        return {key: then[key] for key in then if key in self.subject.outcome_keys}
