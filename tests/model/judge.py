"""Holds a sandbox against the model: whatever is called or happens, and the webhooks of it."""

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from payment_sandbox_verify.answer import Json
from payment_sandbox_verify.model import read_order, step
from payment_sandbox_verify.model.calls import Call, SetReachability
from payment_sandbox_verify.model.records import RETRY_AFTER, START, Shop
from payment_sandbox_verify.walking.driver import MerchantCaller, ServerIds
from payment_sandbox_verify.walking.judge import Judge
from tests.model.driver import ControlDriver

FROM_START = f"frozen@{START.isoformat()}"
WEBHOOK_URL = "http://127.0.0.1:9/webhook"


class Disagreement(AssertionError):
    """The server does what the model does not allow."""


class Saved(NamedTuple):
    """A moment of both."""

    state: Json
    shop: Shop
    ids: ServerIds
    history: list[Call]


def short(call: Call) -> str:
    """A call without what is not set."""
    given = [(f.name, getattr(call, f.name)) for f in fields(call) if getattr(call, f.name) != f.default]
    return f"{type(call).__name__}({', '.join(f'{name}={value!r}' for name, value in given)})"


def webhooks_differ(expected: list[Json], seen: list[Json], order_id: str) -> Iterator[str]:
    """List what webhooks of an order came otherwise."""
    if len(expected) != len(seen):
        yield f"{len(seen)} webhooks instead of {len(expected)}"
        return
    for number, (wanted, shown) in enumerate(zip(expected, seen, strict=True)):
        times = [wanted["since"] + index * RETRY_AFTER for index in range(wanted["attempts"])]
        if shown["at"] != times or shown["state"] != wanted["state"]:
            yield f"webhook {number}: {shown['state']} at {shown['at']} instead of {wanted['state']} at {times}"
        if "url" in wanted and shown["url"] != (wanted["url"] or WEBHOOK_URL):
            yield f"webhook {number}: sent to {shown['url']} instead of {wanted['url'] or WEBHOOK_URL}"
        if any(order_id not in body or "status_changed" not in body for body in shown["body"]):
            yield f"webhook {number}: its body is {shown['body']}"


class ControlJudge:
    """A sandbox and the model of it, side by side."""

    def __init__(self, call: MerchantCaller, shop: Shop | None = None) -> None:
        self.driver = ControlDriver(call)
        self._judge = Judge(self.driver, shop or Shop())
        self.driver.send(SetReachability(is_reachable=True))

    @property
    def shop(self) -> Shop:
        """The state of the model."""
        return self._judge.shop

    @property
    def rules(self) -> dict[str, int]:
        """How often each rule decided a step."""
        return dict(self._judge.rules)

    @property
    def unspecified_calls(self) -> int:
        """Of how many calls nothing is said."""
        return self._judge.unspecified_calls

    def make_call(self, call: Call) -> None:
        """Make a call; the answer must be allowed, and so must all that is read afterwards.

        Raises:
            Disagreement: it is not.
        """
        if not step(self.shop, call):
            self._judge.unspecified_calls += 1
            return
        self._hold([f"{each.reason}; rules: {each.rules}" for each in self._judge.make_call(call)])

    def look(self) -> None:
        """Compare what is read now.

        Raises:
            Disagreement: it is not what the model says.
        """
        self._hold([f"{each.reason}; rules: {each.rules}" for each in self._judge.compare_reads()])

    def _hold(self, texts: list[str]) -> None:
        texts += [] if texts else self._webhooks()
        if texts:
            made = "\n".join(f"  {short(call)}" for call in self._judge.history)
            raise Disagreement("\n".join([f"after\n{made}", *texts]))

    def _webhooks(self) -> Iterator[str]:
        names = self.driver.ids
        for number, order_id in enumerate(names.orders):
            expected = read_order(self.shop, number)
            yield from webhooks_differ(expected["webhooks"], self.driver.webhooks(order_id), order_id)
            for refund_id, refund in zip(names.refunds[number], expected["refunds"], strict=True):
                yield from webhooks_differ(refund["webhooks"], self.driver.webhooks(refund_id), refund_id)

    def save(self) -> Saved:
        """Remember this moment."""
        state = self.driver.call("GET", "/control/state/").data
        return Saved(state, self.shop, self.driver.ids.copy(), list(self._judge.history))

    def restore(self, saved: Saved) -> None:
        """Go back to a moment, perhaps on another server; entity tags have other values then."""
        answer = self.driver.call("PUT", "/control/state/", saved.state)
        assert answer.status == 200, answer.data
        judge = Judge(self.driver, saved.shop)
        judge.history, judge.rules, judge.unspecified_calls = (
            list(saved.history),
            self._judge.rules,
            self._judge.unspecified_calls,
        )
        self._judge, self.driver.ids = judge, saved.ids.copy()
        self.driver.send(SetReachability(saved.shop.is_reachable))
        self.look()
