"""What goes wrong with requests and webhooks, and how often it has been asked."""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from payment_sandbox.forms import read
from payment_sandbox.kernel.periods import Period
from payment_sandbox.scenarios.forms import FaultsForm
from payment_sandbox.scenarios.loader import fault_rules, webhook_rules
from payment_sandbox.scenarios.model import FaultRule, WebhookRule

FORM: Final = FaultsForm()


class Faults:
    """Rules, and a count of the requests that fit each; guarded by the project's state lock."""

    def __init__(
        self,
        faults: Sequence[FaultRule] = (),
        webhooks: Sequence[WebhookRule] = (),
        document: Mapping[str, Any] | None = None,
    ) -> None:
        self._faults = faults
        self._webhooks = webhooks
        self.document = document or {"faults": [], "webhooks": []}
        self._counts = [0] * len(faults)
        self._recent: list[deque[datetime]] = [deque() for _ in faults]

    def strike(self, method: str, path: str, now: datetime) -> Mapping[str, Any]:
        """What goes wrong with this request; empty when nothing does. Counts it for every rule it fits."""
        struck: Mapping[str, Any] = {}
        for index, rule in enumerate(self._faults):
            if not rule.fits(method, path):
                continue
            self._counts[index] += 1
            if rule.nth is not None and self._counts[index] not in rule.nth:
                continue
            if "rate_limit" in rule.then and not self._is_over(index, rule.then["rate_limit"], now):
                continue
            struck = struck or rule.then
        return struck

    def webhook(self, status: str, attempt: int) -> Mapping[str, Any]:
        """How this attempt of a delivery fares; empty: it goes to the merchant."""
        for rule in self._webhooks:
            if rule.holds(status, attempt):
                return rule.then
        return {}

    @property
    def uses(self) -> tuple[tuple[int, list[datetime]], ...]:
        """Per rule: how many requests have fitted it, and when the newest of a rate limit came."""
        return tuple(zip(self._counts, map(list, self._recent), strict=True))

    @uses.setter
    def uses(self, uses: Sequence[tuple[int, list[datetime]]]) -> None:
        for index, (count, recent) in enumerate(uses[: len(self._faults)]):
            self._counts[index] = count
            self._recent[index] = deque(recent)

    def __bool__(self) -> bool:
        return bool(self._faults)

    def _is_over(self, index: int, rate_limit: str, now: datetime) -> bool:
        """Count a request against its limit, in sandbox time; one over it does not count itself."""
        most, _, period = rate_limit.partition("/")
        recent = self._recent[index]
        while recent and Period.parse(period).after(recent[0]) <= now:
            recent.popleft()
        if len(recent) >= int(most):
            return True
        recent.append(now)
        return False


def read_faults(data: Any) -> Faults:
    """Read a document of faults.

    Raises:
        Invalid: lists all that is wrong with it.
    """
    checked = read(FORM, data)
    document = {"faults": data.get("faults", []), "webhooks": data.get("webhooks", [])}
    return Faults(fault_rules(checked), webhook_rules(checked), document)
