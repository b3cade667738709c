"""Faults of requests and webhooks, and how many requests each fault has matched."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import read
from payment_sandbox.scenarios.effects import Fault, RateLimit, WebhookEffect
from payment_sandbox.scenarios.forms import FaultsForm
from payment_sandbox.scenarios.loader import fault_rules, webhook_rules
from payment_sandbox.scenarios.model import FaultRule, Scenario, WebhookRule

FORM: Final = FaultsForm()


class Use(NamedTuple):
    """How many requests a fault has matched, and when the latest ones under a rate limit came."""

    asked: int = 0
    recent: tuple[datetime, ...] = ()


class Faults(NamedTuple):
    """Faults of requests and webhooks, and how many requests each fault has matched."""

    faults: Sequence[FaultRule]
    webhooks: Sequence[WebhookRule]
    document: Mapping[str, Any]
    uses: tuple[Use, ...]

    @classmethod
    def read(cls, data: Any) -> "Faults":
        """Read a document of faults.

        Raises:
            Invalid: lists all violations.
        """
        checked = read(FORM, data)
        document = {"faults": data.get("faults", []), "webhooks": data.get("webhooks", [])}
        return cls.unused(fault_rules(checked), webhook_rules(checked), document)

    @classmethod
    def of(cls, scenario: Scenario) -> "Faults":
        """The faults of a scenario."""
        return cls.unused(scenario.faults, scenario.webhooks, {})

    @classmethod
    def unused(
        cls, faults: Sequence[FaultRule], webhooks: Sequence[WebhookRule], document: Mapping[str, Any]
    ) -> "Faults":
        """Faults that have not matched any request yet."""
        return cls(faults, webhooks, document, (Use(),) * len(faults))

    def carried_over(self, before: "Faults", fresh: Sequence[Any] = ()) -> "Faults":
        """These faults with the uses of the same rules ``before``; those in ``fresh`` begin anew."""
        rules, old = self.document.get("faults", []), list(before.document.get("faults", []))
        uses = []
        for rule in rules:
            is_known = rule in old and rule not in fresh
            uses.append(before.uses[old.index(rule)] if is_known else Use())
        return self._replace(uses=tuple(uses))

    def with_rules(self, kind: str, rules: Sequence[Any], fresh: Sequence[Any] = ()) -> "Faults":
        """The same with these rules for ``faults`` or ``webhooks``; those in ``fresh`` begin anew.

        Raises:
            Invalid: lists all violations.
        """
        return Faults.read({**self.document, kind: list(rules)}).carried_over(self, fresh)

    def used(self, uses: Sequence[Use]) -> "Faults":
        """The same faults with these uses; surplus uses are dropped."""
        known = tuple(uses[: len(self.faults)])
        return self._replace(uses=known + self.uses[len(known) :])

    def match(self, method: str, path: str, now: datetime) -> tuple[Fault | None, "Faults"]:
        """What goes wrong with this request, and the faults with this request counted."""
        matched: Fault | None = None
        uses = list(self.uses)
        for index, rule in enumerate(self.faults):
            if not rule.fits(method, path):
                continue
            use = uses[index] = uses[index]._replace(asked=uses[index].asked + 1)
            if rule.nth is not None and use.asked not in rule.nth:
                continue
            if isinstance(rule.fault.effect, RateLimit):
                uses[index], is_over = _limited(use, rule.fault.effect, now)
                if not is_over:
                    continue
            matched = matched or rule.fault
        return matched, self._replace(uses=tuple(uses))

    def webhook(self, status: str, attempt: int) -> WebhookEffect | None:
        """What happens to this attempt of a delivery; None means that it goes to the merchant."""
        for rule in self.webhooks:
            if rule.holds(status, attempt):
                return rule.effect
        return None


NO_FAULTS: Final = Faults.read({})


def _limited(use: Use, limit: RateLimit, now: datetime) -> tuple[Use, bool]:
    """Count a request against the rate limit, in sandbox time; requests over the limit do not count."""
    recent = tuple(moment for moment in use.recent if limit.period.after(moment) > now)
    if len(recent) >= limit.requests:
        return use._replace(recent=recent), True
    return use._replace(recent=(*recent, now)), False
