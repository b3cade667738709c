"""Runs a sandbox and the model side by side, and compares each answer and the later reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields, replace
from typing import Any, Final, NamedTuple

from tests.model.answers import Json, ServiceAnswer, describe
from tests.model.driver import Driver, MerchantCaller, ServerIds
from tests.model.specification import read_order, step
from tests.model.specification.calls import Call, Cancel, Create, Outcome, SetReachability, Update
from tests.model.specification.records import RETRY_AFTER, START, Order, Shop

FROM_START: Final = f"frozen@{START.isoformat()}"
WEBHOOK_URL: Final = "http://127.0.0.1:9/webhook"
PLAIN_FIELDS: Final = ("status", "amount", "currency", "description")
PRESENCE_FIELDS: Final = ("completed", "reason", "order_url", "payment_url")
DETAIL_FIELDS: Final = ("vault_token", "first_authorised_transaction_id")
CONSTANT_FIELDS: Final = (
    *("id", "currency", "merchant_order_id", "return_url", "webhook_url", "expiration_period", "customer"),
    *("client", "extra", "created", "merchant_id", "project_id", "order_lines", "payment_methods"),
)
"""The fields that no step changes once an order exists."""
CONSTANT_FIELDS_OF_ATTEMPTS: Final = (
    *("id", "order_id", "payment_method", "currency", "product_type", "channel", "balance", "created"),
    *("credit_debit", "capture_mode", "expiration_period"),
)

OrderReads = Mapping[int, ServiceAnswer]
"""The responses to reads of orders, by order number."""


class Disagreement(AssertionError):
    """The model does not allow the behaviour of the server."""


class StoredSnapshot(NamedTuple):
    """A snapshot of the server and of the model."""

    state: Json
    shop: Shop
    ids: ServerIds
    history: list[Call]


def format_call(call: Call) -> str:
    """Format a call without its default values."""
    arguments = [(f.name, getattr(call, f.name)) for f in fields(call) if getattr(call, f.name) != f.default]
    return f"{type(call).__name__}({', '.join(f'{name}={value!r}' for name, value in arguments)})"


class ControlJudge:
    """A comparison of a server with the model, call by call."""

    def __init__(self, call: MerchantCaller, shop: Shop | None = None) -> None:
        self.driver = Driver(call)
        self.shop = shop or Shop()
        self._history: list[Call] = []
        self._previous_reads: dict[str, tuple[ServiceAnswer, Order]] = {}
        self.driver.send(SetReachability(is_reachable=True))

    def make_call(self, call: Call) -> None:
        """Make a call that the model specifies, and compare its response and all later reads with the model.

        Raises:
            Disagreement: the model does not allow the response or a read.
        """
        outcomes = step(self.shop, call)
        if not outcomes:
            return
        self._history.append(call)
        answer = self.driver.send(call)
        error = answer.at("error.type")
        allowed = [each for each in outcomes if each.status == answer.status and each.type in ("", error)]
        if not allowed:
            expected = " or ".join(f"{each.status} {each.type}" for each in outcomes)
            self._raise_if([f"{answer.summary} instead of {expected}"])
        self._compare(allowed, call, answer)

    def compare_now(self) -> None:
        """Compare the present state of the server with the model."""
        self._compare([Outcome(200, self.shop)])

    def _compare(
        self, allowed: Sequence[Outcome], call: Call | None = None, answer: ServiceAnswer | None = None
    ) -> None:
        """Compare all orders with the closest allowed outcome, and the answer if it is an order."""
        reads = {number: self.driver.read(number) for number in range(len(self.driver.ids.orders))}
        chosen = min(allowed, key=lambda outcome: len(list(read_differences(outcome.shop, reads))))
        texts = list(read_differences(chosen.shop, reads))
        if isinstance(call, Create | Update | Cancel) and answer is not None and answer.is_success:
            number = len(chosen.shop.orders) - 1 if isinstance(call, Create) else call.order
            texts += order_differences(read_order(chosen.shop, number), answer)
            texts += _changed_constants(answer, reads[number]) if isinstance(call, Create) else ()
        for number in reads:
            texts += self._refund_differences(number, read_order(chosen.shop, number)["refunds"])
        texts += self._find_instability(chosen.shop, reads)
        self.shop = chosen.shop
        self._raise_if(texts or list(self._webhooks()))

    def _refund_differences(self, number: int, expected: Sequence[Json]) -> Iterator[str]:
        for refund, wanted in zip(self.driver.read_refunds(number), expected, strict=True):
            for name in ("amount", "status"):
                if refund.at(name) != wanted[name]:
                    yield f"{name} of a refund is {describe(refund.at(name))}, not {describe(wanted[name])}"
            if "is-refund" not in refund.list_at("flags"):
                yield "a refund lacks the flag is-refund"

    def _find_instability(self, shop: Shop, reads: OrderReads) -> Iterator[str]:
        """Find changes that have no cause, and missing changes (SET-32, TEV-01)."""
        for number, answer in reads.items():
            order = shop.orders[number]
            state = replace(order, webhooks=(), refunds=tuple(replace(r, webhooks=()) for r in order.refunds))
            order_id = self.driver.ids.orders[number]
            before, state_before = self._previous_reads.get(order_id, (answer, state))
            tags = [side.headers.get("ETag", "") for side in (before, answer)]
            is_same = tags[0] == tags[1]
            if answer.data != before.data if is_same else state == state_before:
                words = "does not change with the order" if is_same else "changes although the order does not"
                yield f"the ETag of an order {words}"
            yield from _changed_constants(before, answer)
            yield from _check_events(before, answer)
            self._previous_reads[order_id] = answer, state

    def _webhooks(self) -> Iterator[str]:
        ids, sent = self.driver.ids, self.driver.webhooks()
        for number, order_id in enumerate(ids.orders):
            expected = read_order(self.shop, number)
            yield from webhook_differences(expected["webhooks"], sent[order_id], order_id)
            for refund_id, refund in zip(ids.refunds[number], expected["refunds"], strict=True):
                yield from webhook_differences(refund["webhooks"], sent[refund_id], refund_id)

    def _raise_if(self, texts: Sequence[str]) -> None:
        if texts:
            history = "\n".join(f"  {format_call(call)}" for call in self._history)
            raise Disagreement("\n".join([f"after\n{history}", *texts]))

    def save(self) -> StoredSnapshot:
        """Save a snapshot of the server and of the model."""
        state = self.driver.call("GET", "/control/state/").data
        return StoredSnapshot(state, self.shop, deepcopy(self.driver.ids), list(self._history))

    def restore(self, saved: StoredSnapshot) -> None:
        """Restore a snapshot, perhaps on another server; entity tags change."""
        answer = self.driver.call("PUT", "/control/state/", saved.state)
        assert answer.status == 200, answer.data
        self.shop, self._history, self._previous_reads = saved.shop, list(saved.history), {}
        self.driver.ids = deepcopy(saved.ids)
        self.driver.send(SetReachability(saved.shop.is_reachable))
        self.compare_now()


def read_differences(shop: Shop, reads: OrderReads) -> Iterator[str]:
    """Yield the differences between the reads and a state of the model."""
    for number, answer in reads.items():
        if answer.is_success:
            yield from order_differences(read_order(shop, number), answer)
        else:
            yield answer.summary


def order_differences(expected: Json, answer: ServiceAnswer) -> Iterator[str]:
    """Yield the fields in which an order differs from the expected order."""
    for name in PLAIN_FIELDS:
        if name in expected and (value := answer.at(name)) != expected[name]:
            yield f"{name} is {describe(value)}, not {describe(expected[name])}"
    for name in PRESENCE_FIELDS:
        if name in expected and (answer.at(name) is not None) != expected[name]:
            yield f"{name} is {'missing' if expected[name] else 'present'}"
    for name, is_expected in expected["flags"].items():
        if (name in answer.list_at("flags")) != is_expected:
            yield f"the flag {name} is {'missing' if is_expected else 'present'}"
    yield from _attempt_differences(expected["transactions"], answer)
    yield from _detail_differences(expected, answer)


def _attempt_differences(expected: Sequence[Json], answer: ServiceAnswer) -> Iterator[str]:
    attempts = answer.list_at("transactions")
    if len(attempts) != len(expected):
        yield f"transactions is {describe(attempts)}, not a list of {len(expected)}"
        return
    for index, expected_attempt in enumerate(expected):
        for name, value in expected_attempt.items():
            details = "payment_method_details." if name in DETAIL_FIELDS else ""
            path = f"transactions[{index}].{details}{name}"
            actual: Any = answer.at(path)
            if name in (*DETAIL_FIELDS, *PRESENCE_FIELDS):
                actual = actual is not None
            if actual != value:
                yield f"{path} is {describe(actual)}, not {describe(value)}"


def _detail_differences(expected: Json, answer: ServiceAnswer) -> Iterator[str]:
    if (actual := answer.at("amount_details")) not in (None, expected["amount_details"]):
        yield f"amount_details are {describe(actual)}, not {expected['amount_details']}"
    lines = answer.at("order_line_details")
    if lines is not None:
        mine, theirs = (_comparable_details(each) for each in (expected["order_line_details"], lines))
        for entry in sorted(mine ^ theirs):
            yield f"order_line_details: {entry} is {'missing' if entry in mine else 'present'}"


def _comparable_details(details: Iterable[Json]) -> set[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return {tuple(str(entry.get(name)) for name in names) for entry in details}


def _changed_constants(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[str]:
    """Report changes to immutable fields."""
    pairs: list[tuple[Json, Json, Sequence[str]]] = [(before.data, after.data, CONSTANT_FIELDS)]
    pairs += [(old, new, CONSTANT_FIELDS_OF_ATTEMPTS) for old, new in _attempt_pairs(before, after)]
    for old, new, names in pairs:
        for name in names:
            if old.get(name) not in (None, new.get(name)):
                yield f"{name} was {describe(old[name])}, and is {describe(new.get(name))} later"


def _attempt_pairs(before: ServiceAnswer, after: ServiceAnswer) -> list[tuple[Json, Json]]:
    """Pair the attempts of two reads; a transfer that is chosen again becomes the last one (A22)."""
    known = {old["id"]: old for old in before.list_at("transactions")}
    return [(known.pop(new["id"]), new) for new in after.list_at("transactions") if new["id"] in known]


def _check_events(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[str]:
    """Check that each change to a transaction's status adds an event, and that no event changes."""
    for old, new in _attempt_pairs(before, after):
        earlier, later, status = old["events"], new["events"], new["status"]
        if later[: len(earlier)] != earlier:
            yield "the events of a transaction lack or change earlier ones"
        elif old["status"] != status and [event["event"] for event in later[len(earlier) :]][-1:] != [status]:
            yield f"the events of a transaction do not record the change to {status}"


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
