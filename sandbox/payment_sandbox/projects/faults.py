"""Faults for requests and webhooks, and the uses of each fault."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import read
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.effects import Fault, RateLimit, WebhookEffect
from payment_sandbox.scenarios.loader import as_written, fault_rules, webhook_rules
from payment_sandbox.scenarios.model import FaultRule, Scenario, WebhookRule
from payment_sandbox.scenarios.scenario_forms import FaultsForm

FAULTS_FORM: Final = FaultsForm()
KINDS: Final = ("faults", "webhooks")


class Use(NamedTuple):
    """The number of matching requests, and the times of recent requests under a rate limit."""

    asked: int = 0
    recent: tuple[datetime, ...] = ()


class ProjectFaults(NamedTuple):
    """Faults for requests and webhooks, with their uses: of each fault, then of each webhook rule."""

    faults: Sequence[FaultRule]
    webhooks: Sequence[WebhookRule]
    document: Mapping[str, Any]
    uses: tuple[Use, ...]

    @classmethod
    def parse(cls, data: Any) -> "ProjectFaults":
        """Read a faults document.

        Raises:
            Invalid: lists all violations.
        """
        checked = read(FAULTS_FORM, data)
        document = {kind: [as_written(rule) for rule in data.get(kind, [])] for kind in KINDS}
        return cls.without_uses(fault_rules(checked), webhook_rules(checked), document)

    @classmethod
    def of(cls, scenario: Scenario) -> "ProjectFaults":
        """Return the faults of a scenario."""
        return cls.without_uses(scenario.faults, scenario.webhooks, {})

    @classmethod
    def without_uses(
        cls, faults: Sequence[FaultRule], webhooks: Sequence[WebhookRule], document: Mapping[str, Any]
    ) -> "ProjectFaults":
        """Create faults that have not been used yet."""
        return cls(faults, webhooks, document, (Use(),) * (len(faults) + len(webhooks)))

    def carry_over(self, before: "ProjectFaults", fresh: Sequence[Any] = ()) -> "ProjectFaults":
        """Carry over the uses of existing rules from ``before``; the rules in ``fresh`` start at zero."""
        uses, start = [], 0
        for kind in KINDS:
            old = list(before.document.get(kind, []))
            for rule in self.document.get(kind, []):
                is_known = rule in old and rule not in fresh
                uses.append(before.uses[start + old.index(rule)] if is_known else Use())
            start += len(old)
        return self._replace(uses=tuple(uses))

    def with_rules(self, kind: str, rules: Sequence[Any], fresh: Sequence[Any]) -> "ProjectFaults":
        """Replace the rules of ``faults`` or ``webhooks``; the rules in ``fresh`` start at zero.

        Raises:
            Invalid: lists all violations.
        """
        return ProjectFaults.parse({**self.document, kind: list(rules)}).carry_over(self, fresh)

    def with_uses(self, uses: Sequence[Use]) -> "ProjectFaults":
        """Set the uses of these faults; surplus uses are dropped."""
        known = tuple(uses[: len(self.uses)])
        return self._replace(uses=known + self.uses[len(known) :])

    def match(self, method: str, path: str, now: datetime) -> tuple[Fault | None, "ProjectFaults"]:
        """Return the fault for this request, if any, and the faults updated to count the request."""
        matched: Fault | None = None
        uses = list(self.uses)
        for index, rule in enumerate(self.faults):
            if not rule.matches(method, path):
                continue
            use = uses[index] = uses[index]._replace(asked=uses[index].asked + 1)
            if rule.nth is not None and use.asked not in rule.nth:
                continue
            if isinstance(rule.fault.effect, RateLimit):
                uses[index], is_over = _count_against_limit(use, rule.fault.effect, now)
                if not is_over:
                    continue
            matched = matched or rule.fault
        return matched, self._replace(uses=tuple(uses))

    def webhook_effect(self, delivery: Delivery) -> WebhookEffect | None:
        """Return the effect on the next attempt of a delivery; None if no rule applies."""
        for rule in self.webhooks:
            if rule.holds(delivery):
                return rule.effect
        return None

    def count_webhook(self, delivery: Delivery) -> "ProjectFaults | None":
        """Count the rule that decided the next attempt of a delivery; None if no rule did."""
        for index, rule in enumerate(self.webhooks, len(self.faults)):
            if rule.holds(delivery):
                uses = list(self.uses)
                uses[index] = uses[index]._replace(asked=uses[index].asked + 1)
                return self._replace(uses=tuple(uses))
        return None

    def with_matches(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a document of these rules in which each says how often it has matched."""
        uses = iter(self.uses)
        counted = {
            kind: [{**rule, "matches": next(uses).asked} for rule in document.get(kind, [])] for kind in KINDS
        }
        return {**document, **{kind: rules for kind, rules in counted.items() if kind in document}}

    @property
    def active_count(self) -> int:
        """The number of rules in effect: a fault with ``nth`` is spent after its last request."""
        return len(self.webhooks) + sum(not self.is_spent(index) for index in range(len(self.faults)))

    def is_spent(self, index: int) -> bool:
        """Whether a request fault has already counted the last request in its ``nth``."""
        nth = self.faults[index].nth
        return nth is not None and self.uses[index].asked >= max(nth)

    @property
    def order_ids(self) -> frozenset[str]:
        """The ids of the orders in webhook rules."""
        return frozenset(rule.order_id for rule in self.webhooks if rule.order_id is not None)

    def without_orders(self, orders: AbstractSet[str]) -> "ProjectFaults":
        """Remove the rules for these orders."""
        if self.order_ids.isdisjoint(orders):
            return self
        own = self.uses[len(self.faults) :]
        rows = zip(self.webhooks, self.document["webhooks"], own, strict=True)
        remaining = [row for row in rows if row[0].order_id not in orders]
        document = {**self.document, "webhooks": [entry for _, entry, _ in remaining]}
        uses = (*self.uses[: len(self.faults)], *(use for _, _, use in remaining))
        return self._replace(webhooks=tuple(rule for rule, _, _ in remaining), document=document, uses=uses)

    def refuse_unknown_orders(self, is_known: Callable[[str], bool]) -> None:
        """Refuse rules for unknown orders, which would never be removed.

        Raises:
            Invalid: a rule names an unknown order.
        """
        unknown = [
            Violation(
                f"webhooks[{index}].when.order_id",
                f"there is no order {rule.order_id!r} in this project",
            )
            for index, rule in enumerate(self.webhooks)
            if rule.order_id is not None and not is_known(rule.order_id)
        ]
        if unknown:
            raise Invalid(unknown)


NO_FAULTS: Final = ProjectFaults.parse({})


def _count_against_limit(use: Use, limit: RateLimit, now: datetime) -> tuple[Use, bool]:
    """Count a request against the rate limit, in sandbox time; refused requests do not count."""
    recent = tuple(moment for moment in use.recent if limit.period.after(moment) > now)
    if len(recent) >= limit.requests:
        return use._replace(recent=recent), True
    return use._replace(recent=(*recent, now)), False
