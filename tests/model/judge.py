"""Compares a sandbox with the model: responses, orders and webhooks."""

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from tests.model.answers import Json
from tests.model.calling import MerchantCaller, ServerIds
from tests.model.driver import ControlDriver
from tests.model.judging import Judge
from tests.model.specification import read_order, step
from tests.model.specification.calls import Call, SetReachability
from tests.model.specification.records import RETRY_AFTER, START, Shop

FROM_START = f"frozen@{START.isoformat()}"
WEBHOOK_URL = "http://127.0.0.1:9/webhook"


class Disagreement(AssertionError):
    """The model does not allow the behaviour of the server."""


class Snapshot(NamedTuple):
    """A snapshot of the server and of the model."""

    state: Json
    shop: Shop
    ids: ServerIds
    history: list[Call]


def format_call(call: Call) -> str:
    """Format a call without its default values."""
    arguments = [(f.name, getattr(call, f.name)) for f in fields(call) if getattr(call, f.name) != f.default]
    return f"{type(call).__name__}({', '.join(f'{name}={value!r}' for name, value in arguments)})"


def webhook_differences(expected: list[Json], received: list[Json], order_id: str) -> Iterator[str]:
    """Yield the differences between the expected and the actual webhooks of an order."""
    if len(expected) != len(received):
        yield f"{len(received)} webhooks instead of {len(expected)}"
        return
    for number, (planned, actual) in enumerate(zip(expected, received, strict=True)):
        times = [planned["since"] + index * RETRY_AFTER for index in range(planned["attempts"])]
        if actual["at"] != times or actual["state"] != planned["state"]:
            yield f"webhook {number}: {actual['state']} at {actual['at']} instead of {planned['state']} at {times}"
        if "url" in planned and actual["url"] != (planned["url"] or WEBHOOK_URL):
            yield f"webhook {number}: sent to {actual['url']} instead of {planned['url'] or WEBHOOK_URL}"
        if any(order_id not in body or "status_changed" not in body for body in actual["body"]):
            yield f"webhook {number}: its body is {actual['body']}"


class ControlJudge:
    """Runs a sandbox and its model side by side."""

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
        """The number of steps that each rule decided."""
        return dict(self._judge.rules)

    @property
    def unspecified_calls(self) -> int:
        """The number of calls that the model does not specify."""
        return self._judge.unspecified_calls

    def make_call(self, call: Call) -> None:
        """Make a call, and compare its response and all later reads with the model.

        Raises:
            Disagreement: the model does not allow the response or a read.
        """
        if not step(self.shop, call):
            self._judge.unspecified_calls += 1
            return
        self._raise_on_difference(
            [f"{each.reason}; rules: {each.rules}" for each in self._judge.make_call(call)]
        )

    def compare_now(self) -> None:
        """Compare the present state of the server with the model.

        Raises:
            Disagreement: the server differs from the model.
        """
        self._raise_on_difference(
            [f"{each.reason}; rules: {each.rules}" for each in self._judge.compare_reads()]
        )

    def _raise_on_difference(self, texts: list[str]) -> None:
        texts += [] if texts else self._webhooks()
        if texts:
            history = "\n".join(f"  {format_call(call)}" for call in self._judge.history)
            raise Disagreement("\n".join([f"after\n{history}", *texts]))

    def _webhooks(self) -> Iterator[str]:
        names = self.driver.ids
        for number, order_id in enumerate(names.orders):
            expected = read_order(self.shop, number)
            yield from webhook_differences(expected["webhooks"], self.driver.webhooks(order_id), order_id)
            for refund_id, refund in zip(names.refunds[number], expected["refunds"], strict=True):
                yield from webhook_differences(refund["webhooks"], self.driver.webhooks(refund_id), refund_id)

    def save(self) -> Snapshot:
        """Save a snapshot of the server and of the model."""
        state = self.driver.call("GET", "/control/state/").data
        return Snapshot(state, self.shop, self.driver.ids.copy(), list(self._judge.history))

    def restore(self, saved: Snapshot) -> None:
        """Restore a snapshot, perhaps on another server; entity tags change."""
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
        self.compare_now()
