"""Holds a server against the model: every answer, and everything that is read afterwards."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

from payment_sandbox_verify.model import read_order, step
from payment_sandbox_verify.model.calls import Answer, Call, Outcome
from payment_sandbox_verify.model.records import RETRY_AFTER, START, Order, Shop
from tests.model.driver import Door, Driver, Json, Names

FROM_START = f"frozen@{START.isoformat()}"
WEBHOOK_URL = "http://127.0.0.1:9/webhook"
PRESENT = {"completed", "reason", "order_url", "payment_url"}
IN_DETAILS = {"vault_token", "first_authorised_transaction_id"}


class Disagreement(AssertionError):
    """The server does what the model does not allow."""


def _attempt_differences(expected: Json, seen: Json) -> Iterator[str]:
    for name, value in expected.items():
        shown: Any = seen.get(name)
        if name in IN_DETAILS | PRESENT:
            shown = name in seen or name in seen["payment_method_details"]
        if shown != value:
            yield f"{name}: {shown!r} instead of {value!r}"


def _webhook_differences(expected: list[Json], seen: list[Json], order_id: str) -> Iterator[str]:
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


def differences(expected: Json, seen: Json) -> Iterator[str]:
    """List what an order should show and does not."""
    for name in {"amount", "currency", "status", "description"} & expected.keys():
        if seen.get(name) != expected[name]:
            yield f"{name}: {seen.get(name)!r} instead of {expected[name]!r}"
    presence = {name: expected[name] for name in PRESENT & expected.keys()}
    for name, is_there in [*presence.items(), *expected["flags"].items()]:
        if (name in seen or name in seen["flags"]) != is_there:
            yield f"{name} is {'missing' if is_there else 'there'}"
    yield from _details(expected, seen)
    yield from _lists(expected, seen)


def _details(expected: Json, seen: Json) -> Iterator[str]:
    if expected.get("amount_details", {}).items() - seen["amount_details"].items():
        yield f"amount_details: {seen['amount_details']} instead of {expected['amount_details']}"
    if "order_line_details" in expected:
        mine, theirs = (_entries(side["order_line_details"]) for side in (expected, seen))
        if mine != theirs:
            yield f"order_line_details: {theirs} instead of {mine}"


def _entries(listed: list[Json]) -> list[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return sorted(tuple(entry[name] for name in names) for entry in listed)


def _lists(expected: Json, seen: Json) -> Iterator[str]:
    pairs = (expected["transactions"], seen["transactions"]), (expected["refunds"], seen["refunds"])
    for mine, theirs in pairs:
        if len(mine) != len(theirs):
            yield f"{len(theirs)} instead of {len(mine)} transactions or refunds"
            return
    for number, (wanted, shown) in enumerate(zip(*pairs[0], strict=True)):
        yield from (f"transactions[{number}].{text}" for text in _attempt_differences(wanted, shown))
    yield from _webhook_differences(expected["webhooks"], seen["webhooks"], seen["id"])
    for number, (wanted, shown) in enumerate(zip(*pairs[1], strict=True)):
        facts = {
            "amount": shown["amount"],
            "status": shown["status"],
            "is-refund": "is-refund" in shown["flags"],
        }
        for name, value in facts.items():
            if value != wanted[name]:
                yield f"refunds[{number}].{name}: {value!r} instead of {wanted[name]!r}"
        yield from _webhook_differences(wanted["webhooks"], shown["webhooks"], shown["id"])


class Saved(NamedTuple):
    """A moment of both."""

    state: Json
    shop: Shop
    names: Names
    history: list[Call]


def short(call: Call) -> str:
    """A call without what is not set."""
    given = [(f.name, getattr(call, f.name)) for f in fields(call) if getattr(call, f.name) != f.default]
    return f"{type(call).__name__}({', '.join(f'{name}={value!r}' for name, value in given)})"


class Judge:
    """A server and the model of it, side by side."""

    def __init__(self, door: Door, shop: Shop | None = None) -> None:
        self.driver = Driver(door)
        self.shop = shop or Shop()
        self.history: list[Call] = []
        self.rules: Counter[str] = Counter()
        self.silent = 0
        self._seen: dict[str, tuple[Json, Order, str]] = {}
        self.driver.send(Answer(is_reachable=True))

    def do(self, call: Call) -> Outcome | None:
        """Make a call; the answer must be allowed, and so must all that is read afterwards.

        Raises:
            Disagreement: it is not.
        """
        outcomes = step(self.shop, call)
        self.history.append(call)
        if not outcomes:
            self.silent += 1
            self.history.pop()
            return None
        status, body = self.driver.send(call)
        chosen = self._chosen(outcomes, status, body)
        self.shop = chosen.shop
        self.rules.update(chosen.rules)
        self.rules.update([chosen.assumption] if chosen.assumption else [])
        return chosen

    def _chosen(self, outcomes: Iterable[Outcome], status: int, body: Any) -> Outcome:
        kind = body["error"]["type"] if status >= 400 else ""
        right = [o for o in outcomes if o.status == status and o.type in {kind, ""}]
        if not right:
            allowed = [(o.status, o.type, *o.rules, o.assumption) for o in outcomes]
            raise self._disagreement([f"answered {status} {kind} {body}; allowed: {allowed}"])
        return self.compare(right)

    def compare(self, allowed: list[Outcome]) -> Outcome:
        """Return the outcome that agrees with what is read.

        Raises:
            Disagreement: none does.
        """
        seen = [self.driver.read(number) for number in range(len(allowed[0].shop.orders))]
        texts: list[str] = []
        for outcome in allowed:
            texts = [
                f"order {number}: {text}"
                for number, shown in enumerate(seen)
                for text in differences(read_order(outcome.shop, number), shown)
            ]
            if not texts:
                self._hold_tags(outcome.shop, seen)
                return outcome
        raise self._disagreement([*texts, f"rules: {allowed[-1].rules}, {allowed[-1].assumption}"])

    def _hold_tags(self, shop: Shop, seen: list[Json]) -> None:
        """An entity tag changes if what is read does, and does not if nothing has changed (SET-32, A20)."""
        for order, shown in zip(shop.orders, seen, strict=True):
            tag = shown.pop("etag") or ""
            read = {name: value for name, value in shown.items() if name not in {"webhooks", "refunds"}}
            state = replace(order, webhooks=(), refunds=tuple(replace(r, webhooks=()) for r in order.refunds))
            read_before, state_before, tag_before = self._seen.get(shown["id"], (read, state, tag))
            is_same = tag == tag_before
            if not tag.startswith('"') or (is_same and read != read_before):
                raise self._disagreement([f"the entity tag is still {tag}; rules: ('SET-32',)"])
            if not is_same and state == state_before:
                raise self._disagreement([f"the entity tag {tag_before} became {tag}; rules: ('SET-32',)"])
            self._seen[shown["id"]] = read, state, tag

    def save(self) -> "Saved":
        """Remember this moment."""
        _, state, _ = self.driver.door.exchange("GET", "/control/state/")
        return Saved(state, self.shop, self.driver.names.copy(), list(self.history))

    def restore(self, saved: "Saved") -> None:
        """Go back to a moment, perhaps on another server."""
        status, body, _ = self.driver.door.exchange("PUT", "/control/state/", saved.state)
        assert status == 200, body
        self.shop, self.history, self._seen = saved.shop, list(saved.history), {}
        self.driver.names = saved.names.copy()
        self.driver.send(Answer(saved.shop.is_reachable))
        self.compare([Outcome(200, saved.shop)])  # entity tags have other values after a restore

    def _disagreement(self, texts: list[str]) -> Disagreement:
        made = "\n".join(f"  {short(call)}" for call in self.history)
        return Disagreement("\n".join([f"after\n{made}", *texts]))
