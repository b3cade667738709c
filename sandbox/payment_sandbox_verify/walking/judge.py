"""Holds a server against the model: every answer, and everything that is read afterwards."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, ServiceAnswer, plain
from payment_sandbox_verify.checks import RULE_OF_STATUS, STATUSES_RULE, shown
from payment_sandbox_verify.fields import FIELDS, leaves
from payment_sandbox_verify.model import read_order, step
from payment_sandbox_verify.model.calls import (
    Advance,
    Call,
    Cancel,
    Capture,
    Create,
    MakeRefund,
    Outcome,
    Update,
)
from payment_sandbox_verify.model.changes import ended
from payment_sandbox_verify.model.records import METHODS, Order, Shop
from payment_sandbox_verify.model.steps import stale
from payment_sandbox_verify.walking.driver import Driver, Json

CREATED: Final = 201
STALE: Final = 412
GUARDED: Final = (Update, Cancel, Capture, MakeRefund)
PERIOD: Final = "transactions.expiration_period"
STATUSES: Final = ("status", "transactions", "transactions.status")
PRESENT: Final = ("completed", "reason", "order_url", "payment_url")
IN_DETAILS: Final = ("vault_token", "first_authorised_transaction_id")
STATES: Final = ("status", "transactions.status", "transactions", "amount", "amount_details.captured")
"""What later calls depend on: when one of these differs, nothing that follows can be judged."""
RULES: Final = FIELDS | {
    "amount_details.voided": "VOID-01",
    "transactions.capture_mode": "CAP-01",
    "reason": "ORD-25",
    "transactions.reason": "SET-28",
    "transactions.vault_token": "CARD-20",
    "transactions.first_authorised_transaction_id": "CARD-21",
    "order_line_details.captured": "STA-19",
    "order_line_details.voided": "STA-20",
}
STAYING: Final = (
    *("id", "currency", "merchant_order_id", "return_url", "webhook_url", "expiration_period", "customer"),
    *("client", "extra", "created", "merchant_id", "project_id", "order_lines", "payment_methods"),
    *("transactions.id", "transactions.order_id", "transactions.payment_method", "transactions.currency"),
    *("transactions.product_type", "transactions.channel", "transactions.balance", "transactions.created"),
    *("transactions.credit_debit", "transactions.capture_mode", "transactions.expiration_period"),
)
"""What no step changes once an order is made."""


class Difference(NamedTuple):
    """What the model does not allow, and the rules that say so.

    ``is_final`` means that the model no longer knows the state; ``refusal`` is the answer that refused.
    """

    rules: tuple[str, ...]
    how: str
    is_final: bool = False
    refusal: ServiceAnswer | None = None


class Finding(NamedTuple):
    """A place of an order, and what is wrong there."""

    place: str
    text: str


def views_differ(expected: Json, seen: ServiceAnswer) -> Iterator[Finding]:
    """List what an order should show and does not."""
    for name in ("status", "amount", "currency", "description"):
        if name in expected and (value := plain(seen.at(name))) != expected[name]:
            yield Finding(name, f"{name} is {shown(value)}, not {shown(expected[name])}")
    for name in PRESENT:
        if name in expected and (plain(seen.at(name)) is not None) != expected[name]:
            yield Finding(name, f"{name} is {'missing' if expected[name] else 'there'}")
    flags = seen.at("flags")
    for name, is_there in expected["flags"].items() if isinstance(flags, list) else ():
        if (name in flags) != is_there:
            yield Finding("flags", f"the flag {name} is {'missing' if is_there else 'there'}")
    yield from _attempts_differ(expected["transactions"], seen)
    yield from _details_differ(expected, seen)


def _attempts_differ(expected: Sequence[Json], seen: ServiceAnswer) -> Iterator[Finding]:
    attempts = seen.at("transactions")
    if not isinstance(attempts, list) or len(attempts) != len(expected):
        yield Finding("transactions", f"transactions is {shown(attempts)}, not {len(expected)} of them")
        return
    for index, wanted in enumerate(expected):
        for name, value in wanted.items():
            place = f"transactions[{index}].{name}"
            there: Any = plain(seen.at(place))
            if name in IN_DETAILS:
                there = plain(seen.at(f"transactions[{index}].payment_method_details.{name}"))
            if name in (*IN_DETAILS, *PRESENT):
                there = there is not None
            if there != value:
                yield Finding(place, f"{place} is {shown(there)}, not {shown(value)}")


def _details_differ(expected: Json, seen: ServiceAnswer) -> Iterator[Finding]:
    for name, value in expected.get("amount_details", {}).items():
        there = seen.at(f"amount_details.{name}")
        if there != value and there is not MISSING:
            yield Finding(f"amount_details.{name}", f"amount_details.{name} is {shown(there)}, not {value}")
    if "order_line_details" in expected and isinstance(seen.at("order_line_details"), list):
        mine, theirs = (
            _entries(each) for each in (expected["order_line_details"], seen.at("order_line_details"))
        )
        for entry in sorted(mine ^ theirs):
            words = "is missing" if entry in mine else "is there"
            yield Finding(f"order_line_details.{entry[2]}", f"{entry[3]} {entry[0]} {entry[2]} {words}")


def _entries(listed: Iterable[Json]) -> set[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return {tuple(str(entry.get(name)) for name in names) for entry in listed}


Seen = Mapping[int, ServiceAnswer]
"""What was read of some orders, by their numbers."""


class Judge:
    """A server and the model of it, side by side."""

    def __init__(self, driver: Driver, shop: Shop, *, reads_all: bool = True) -> None:
        """All orders are read after a step, or only the one that it is about."""
        self.driver = driver
        self._reads_all = reads_all
        self.shop = shop
        self.history: list[Call] = []
        self.rules: Counter[str] = Counter()
        self.silent = 0
        self.refusal: ServiceAnswer | None = None  # the last answer, if it refused a call
        self._is_untagged = False
        self._seen: dict[str, tuple[ServiceAnswer, Order, str]] = {}

    def do(self, call: Call, *, reads: bool = True) -> list[Difference]:
        """Make a call; the answer must be allowed, and so must all that is read afterwards.

        A call that is refused, as it should, is not followed by reads if ``reads`` is off. Once entity tags
        are wrong, none guards a call.
        """
        self.refusal = None
        guard = call.if_match if isinstance(call, GUARDED) else ""
        if self._is_untagged and guard == "stale":
            return []
        if self._is_untagged and isinstance(call, GUARDED):
            call = replace(call, if_match="")
        outcomes = step(self.shop, call)
        if not outcomes:
            self.silent += 1
            return []
        self.history.append(call)
        answer = self.driver.send(call)
        fitting = [each for each in outcomes if (each.status < 400) == answer.is_success]
        if not fitting:
            rules = outcomes[0].rules if answer.is_success else outcomes[0].accepted
            rules = stale(call).rules if answer.status == STALE and guard else rules
            words = "is not refused" if answer.is_success else "is refused"
            return [Difference(rules, f"{answer.call} {words}: {answer.summary}", True, answer)]
        exact = [each for each in fitting if fits(each, answer)]
        self.refusal = None if answer.is_success else answer
        differences = [] if exact else list(misanswered(fitting[0], answer, call))
        if exact and answer.is_success:
            self.rules.update(("END-02", "SET-07") if answer.status == CREATED else ("SET-07",))
        if not answer.is_success and not reads:
            self._choose((exact or fitting)[0])
            return differences
        return [*differences, *self.look(exact or fitting, call, answer)]

    def look(
        self, allowed: Sequence[Outcome] = (), call: Call | None = None, answer: ServiceAnswer | None = None
    ) -> list[Difference]:
        """Read all orders; one of the allowed outcomes must agree with what is read, or the state before.

        The ``answer`` to the call must agree as well, if it is an order.
        """
        numbers = range(len(self.driver.names.orders))
        if call is not None and not self._reads_all and not isinstance(call, Advance):
            number = getattr(call, "order", len(numbers) - 1)
            numbers = numbers[number : number + 1]
        seen = {number: self.driver.read(number) for number in numbers}
        outcomes = allowed or (Outcome(200, self.shop),)
        chosen = min(outcomes, key=lambda outcome: sum(1 for _ in _misread(outcome.shop, seen)))
        found = [*self._answered(chosen, call, answer), *self._differing(chosen, seen)]
        self.rules.update(["END-03"] if seen and all(each.is_success for each in seen.values()) else [])
        found += self._unstable(chosen.shop, seen, answer if isinstance(call, Create) else None)
        self._choose(chosen)
        return found

    def _choose(self, outcome: Outcome) -> None:
        self.shop = outcome.shop
        self.rules.update(outcome.rules)
        self.rules.update([outcome.assumption] if outcome.assumption else [])

    def _answered(
        self, outcome: Outcome, call: Call | None, answer: ServiceAnswer | None
    ) -> Iterator[Difference]:
        """What the answer to a creation, an update or a cancellation shows otherwise than the model says."""
        if answer is None or not answer.is_success or not isinstance(call, Create | Update | Cancel):
            return
        number = len(outcome.shop.orders) - 1 if isinstance(call, Create) else call.order
        if isinstance(answer.data, dict):
            yield from self._explained(outcome, number, answer)

    def _differing(self, outcome: Outcome, seen: Seen) -> Iterator[Difference]:
        """What is read otherwise than the model says."""
        for number, answer in seen.items():
            yield from self._explained(outcome, number, answer)
            yield from self._refunds_differ(number, read_order(outcome.shop, number)["refunds"])

    def _explained(self, outcome: Outcome, number: int, answer: ServiceAnswer) -> Iterator[Difference]:
        """Name the rules: that of the step for what it should change, that of the field for the rest.

        The state comes first, which explains the rest.
        """
        expected = read_order(outcome.shop, number)
        known = number < len(self.shop.orders)
        changed = _changed(read_order(self.shop, number) if known else {}, expected)
        rules = outcome.rules
        if isinstance(self.history[-1], Advance) and known:
            rules = ended(self.shop.orders[number], outcome.shop.orders[number])
        found = sorted(views_differ(expected, answer), key=lambda each: name_of(each.place) not in STATES)
        for place, text in found:
            name = name_of(place)
            is_of_step = name in STATES and rules and (name in changed or name in STATUSES)
            yield Difference(rules[:1] if is_of_step else rules_at(name, expected), text, name in STATES)
            if name in STATES:
                return

    def _refunds_differ(self, number: int, expected: Sequence[Json]) -> Iterator[Difference]:
        for refund, wanted in zip(self.driver.read_refunds(number), expected, strict=True):
            for name in ("amount", "status"):
                if refund.at(name) != wanted[name]:
                    how = f"{name} of a refund is {shown(refund.at(name))}, not {shown(wanted[name])}"
                    yield Difference(("SET-48",), how)
            flags = refund.at("flags")
            if isinstance(flags, list) and "is-refund" not in flags:
                yield Difference(("SET-48", "SET-26"), "a refund has no flag is-refund")

    def _unstable(self, shop: Shop, seen: Seen, made: ServiceAnswer | None) -> Iterator[Difference]:
        """What changes without a reason, and what stays in spite of one (SET-32, TX-16)."""
        for leaf in _moved(made, next(iter(seen.values()), made)) if made is not None else ():
            yield leaf._replace(rules=("END-03", *leaf.rules))
        for number, answer in seen.items():
            order = shop.orders[number]
            tag = answer.headers.get("ETag", "")
            state = replace(order, webhooks=(), refunds=tuple(replace(r, webhooks=()) for r in order.refunds))
            if (known := self._seen.get(str(answer.at("id")))) is not None:
                before, state_before, tag_before = known
                is_same = tag == tag_before
                if is_same and tag and answer.data != before.data:
                    self._is_untagged = True
                    yield Difference(("SET-32",), "the ETag of an order stays when the order changes")
                if not is_same and state == state_before:
                    self._is_untagged = True
                    yield Difference(("SET-32",), "the ETag of an order changes when the order stays")
                yield from _moved(before, answer)
                yield from _events(before, answer)
            self._seen[str(answer.at("id"))] = answer, state, tag


def _misread(shop: Shop, seen: Seen) -> Iterator[Finding]:
    """Everything that is read otherwise than in a state of the model."""
    for number, answer in seen.items():
        yield from views_differ(read_order(shop, number), answer)


def fits(outcome: Outcome, answer: ServiceAnswer) -> bool:
    """Whether an answer has the status and the type of error of an outcome."""
    kind = answer.at("error.type")
    return outcome.status == answer.status and outcome.type in ("", "" if kind is MISSING else kind)


def misanswered(outcome: Outcome, answer: ServiceAnswer, call: Call) -> Iterator[Difference]:
    """A success or refusal that is right, with another status or type of error."""
    if answer.is_success:
        first = {Create: ("END-02",), Cancel: ("SET-50",)}.get(type(call), ())
        yield Difference((*first, "SET-07"), f"{answer.call} is {answer.summary}, not {outcome.status}")
        return
    if answer.status != outcome.status:
        rule = RULE_OF_STATUS.get(outcome.status, STATUSES_RULE)
        yield Difference((rule,), f"{answer.call} is {answer.summary}, not {outcome.status}", False, answer)
    elif outcome.type:
        how = f"{answer.call}: the error's type is {shown(answer.at('error.type'))}, not {outcome.type!r}"
        yield Difference(("SET-04",), how, False, answer)


def name_of(place: str) -> str:
    """A place without the numbers of its items."""
    return "".join(part.partition("]")[2] if "]" in part else part for part in place.split("["))


def _changed(before: Json, expected: Json) -> set[str]:
    """The places that a step should change."""
    return {name_of(leaf.place) for leaf in leaves(expected, before) if leaf.there != leaf.here}


def rules_at(name: str, expected: Json) -> tuple[str, ...]:
    """The rules of a place in an order; of a default period, those of its method."""
    if name == PERIOD:
        attempt = expected["transactions"][0]
        facts = METHODS[attempt["payment_method"]]
        if attempt["expiration_period"] == facts.period:
            return facts.by_default
    return (rule_at(name),)


def rule_at(name: str) -> str:
    """The rule of a place in an order."""
    while name and name not in RULES:
        name = name.rpartition(".")[0]
    return RULES.get(name, "END-03")


def _moved(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Difference]:
    """What no step changes, and has changed."""
    for leaf in leaves(after.data, before.data):
        name = name_of(leaf.place)
        root = next((kept for kept in STAYING if name == kept or name.startswith(f"{kept}.")), None)
        if root is not None and leaf.there != leaf.here and leaf.here is not MISSING:
            yield Difference(
                (rule_at(name),), f"{leaf.place} was {shown(leaf.here)}, and is {shown(leaf.there)} later"
            )


def _events(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Difference]:
    """Events stay, and each change of a transaction's status adds one."""
    attempts = before.at("transactions")
    for index in range(len(attempts) if isinstance(attempts, list) else 0):
        old, new = (side.at(f"transactions[{index}].events") for side in (before, after))
        if not isinstance(old, list) or not isinstance(new, list):
            continue
        if new[: len(old)] != old:
            yield Difference(
                ("TX-16", "TEV-01"), f"transactions[{index}].events loses or changes earlier ones"
            )
        statuses = [side.at(f"transactions[{index}].status") for side in (before, after)]
        if statuses[0] != statuses[1] and (len(new) <= len(old) or new[-1].get("event") != statuses[1]):
            how = f"the status of transactions[{index}] became {shown(statuses[1])}, and no event says so"
            yield Difference(("TX-16", "TEV-01"), how)
