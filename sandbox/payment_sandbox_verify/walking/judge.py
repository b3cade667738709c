"""Compares a server with the model: every answer, and the later reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, Json, ServiceAnswer, plain
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
from payment_sandbox_verify.model.changes import ending_rules
from payment_sandbox_verify.model.records import METHODS, Order, Shop
from payment_sandbox_verify.model.steps import stale
from payment_sandbox_verify.walking.driver import Driver

OK: Final = 200
CREATED: Final = 201
STALE: Final = 412
GUARDED: Final = (Update, Cancel, Capture, MakeRefund)
PRESENT: Final = ("completed", "reason", "order_url", "payment_url")
IN_DETAILS: Final = ("vault_token", "first_authorised_transaction_id")
MODIFIED: Final = (("ORD-19", ""), ("TX-06", "transactions[0]."))
ATTEMPTS: Final = "transactions"
PERIOD: Final = "transactions.expiration_period"
STATUSES: Final = ("status", "transactions", "transactions.status")
STATES: Final = ("status", "transactions.status", "transactions", "amount", "amount_details.captured")
"""The fields on which later calls depend: a difference in one of them ends the comparison."""
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
CONSTANT_FIELDS: Final = (
    *("id", "currency", "merchant_order_id", "return_url", "webhook_url", "expiration_period", "customer"),
    *("client", "extra", "created", "merchant_id", "project_id", "order_lines", "payment_methods"),
    *("transactions.id", "transactions.order_id", "transactions.payment_method", "transactions.currency"),
    *("transactions.product_type", "transactions.channel", "transactions.balance", "transactions.created"),
    *("transactions.credit_debit", "transactions.capture_mode", "transactions.expiration_period"),
)
"""The fields that no step changes after the creation of an order."""


Seen = Mapping[int, ServiceAnswer]
"""The responses to reads of orders, by order number."""


class Deviation(NamedTuple):
    """A deviation from the model, and the violated rules.

    ``is_final`` means that the model no longer knows the state; ``refusal`` is the answer that refused.
    """

    rules: tuple[str, ...]
    how: str
    is_final: bool = False
    refusal: ServiceAnswer | None = None


class FieldDifference(NamedTuple):
    """A path in an order, and the difference in its value."""

    place: str
    text: str


def views_differ(expected: Json, seen: ServiceAnswer) -> Iterator[FieldDifference]:
    """Yield the differences of an order from its expected fields."""
    for name in ("status", "amount", "currency", "description"):
        if name in expected and (value := plain(seen.at(name))) != expected[name]:
            yield FieldDifference(name, f"{name} is {shown(value)}, not {shown(expected[name])}")
    yield from _presence_differs(expected, seen)
    yield from _attempts_differ(expected["transactions"], seen)
    yield from _details_differ(expected, seen)


def _presence_differs(expected: Json, seen: ServiceAnswer) -> Iterator[FieldDifference]:
    for name in PRESENT:
        if name in expected and (plain(seen.at(name)) is not None) != expected[name]:
            yield FieldDifference(name, f"{name} is {'missing' if expected[name] else 'present'}")
    flags = seen.at("flags")
    for name, is_there in expected["flags"].items() if isinstance(flags, list) else ():
        if (name in flags) != is_there:
            yield FieldDifference("flags", f"the flag {name} is {'missing' if is_there else 'present'}")


def _attempts_differ(expected: Sequence[Json], seen: ServiceAnswer) -> Iterator[FieldDifference]:
    attempts = seen.at("transactions")
    if not isinstance(attempts, list) or len(attempts) != len(expected):
        yield FieldDifference(
            "transactions", f"transactions is {shown(attempts)}, not a list of {len(expected)}"
        )
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
                yield FieldDifference(place, f"{place} is {shown(there)}, not {shown(value)}")


def _details_differ(expected: Json, seen: ServiceAnswer) -> Iterator[FieldDifference]:
    for name, value in expected.get("amount_details", {}).items():
        there = seen.at(f"amount_details.{name}")
        if there != value and there is not MISSING:
            yield FieldDifference(
                f"amount_details.{name}", f"amount_details.{name} is {shown(there)}, not {value}"
            )
    if "order_line_details" in expected and isinstance(seen.at("order_line_details"), list):
        mine, theirs = (
            _entries(each) for each in (expected["order_line_details"], seen.at("order_line_details"))
        )
        for entry in sorted(mine ^ theirs):
            words = "is missing" if entry in mine else "is present"
            yield FieldDifference(
                f"order_line_details.{entry[2]}", f"{entry[3]} {entry[0]} {entry[2]} {words}"
            )


def _entries(listed: Iterable[Json]) -> set[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return {tuple(str(entry.get(name)) for name in names) for entry in listed}


def count_differences(shop: Shop, seen: Seen) -> int:
    """Count the differences of the reads from a state of the model."""
    return sum(1 for number in seen for _ in views_differ(read_order(shop, number), seen[number]))


def name_of(place: str) -> str:
    """Remove the list indexes from a path."""
    return "".join(part.partition("]")[2] if "]" in part else part for part in place.split("["))


class Judge:
    """A comparison of a server with the model, call by call."""

    def __init__(self, driver: Driver, shop: Shop, *, reads_all: bool = True) -> None:
        """Read all orders after a step, or only its own order."""
        self.driver = driver
        self._reads_all = reads_all
        self.shop = shop
        self.history: list[Call] = []
        self.rules: Counter[str] = Counter()
        self.silent = 0
        self.answer: ServiceAnswer | None = None  # to the last call, if the model allows it
        self._is_untagged = False
        self.stuck: set[str] = set()  # rules of modification times that did not change with the status
        self._seen: dict[str, tuple[ServiceAnswer, Order]] = {}

    def do(self, call: Call, *, reads: bool = True) -> list[Deviation]:
        """Make a call; report where the answer and the later reads differ from the model.

        Without ``reads``, no reads follow a correctly refused call. After an incorrect entity tag, calls have
        no tags.
        """
        self.answer = None
        asked = self._drop_stale_tag(call)
        outcomes = step(self.shop, asked) if asked is not None else ()
        if asked is None or not outcomes:
            self.silent += 1
            return []
        self.history.append(asked)
        return self._judge_answer(asked, outcomes, self.driver.send(asked), reads=reads)

    def _judge_answer(
        self, asked: Call, outcomes: Sequence[Outcome], answer: ServiceAnswer, *, reads: bool
    ) -> list[Deviation]:
        fitting = [each for each in outcomes if (each.status < 400) == answer.is_success]
        if not fitting:
            return [contradiction(outcomes[0], asked, answer)]
        exact = [each for each in fitting if fits(each, answer)]
        allowed = exact or fitting
        self.answer = answer
        self.rules.update(proven_rules(answer, allowed))
        differences = [] if exact else list(report_wrong_status(fitting[0], answer, asked))
        return differences + (
            self.compare_reads(allowed, asked, answer) if answer.is_success or reads else []
        )

    def _drop_stale_tag(self, call: Call) -> Call | None:
        """Remove the entity tag from a call after an incorrect tag; None if the call only tests the tag."""
        if not self._is_untagged or not isinstance(call, GUARDED):
            return call
        return None if call.if_match == "stale" else replace(call, if_match="")

    def compare_reads(
        self, allowed: Sequence[Outcome] = (), call: Call | None = None, answer: ServiceAnswer | None = None
    ) -> list[Deviation]:
        """Read the orders; compare them with the closest allowed outcome, or with the present state.

        If the ``answer`` to the call is an order, it is compared as well.
        """
        seen = {number: self.driver.read(number) for number in self._numbers_to_read(call)}
        outcomes = allowed or (Outcome(200, self.shop),)
        chosen = min(outcomes, key=lambda outcome: count_differences(outcome.shop, seen))
        found = [*self._compare_answer(chosen, call, answer), *self._compare_orders(chosen, seen)]
        self.rules.update(["END-03"] if seen else [])
        found += _values_not_stored(answer, seen) if isinstance(call, Create) and answer is not None else ()
        found += self._find_instability(chosen.shop, seen)
        self._choose(chosen)
        return found

    def _numbers_to_read(self, call: Call | None) -> range:
        """Return the numbers of the orders to read after a call."""
        numbers = range(len(self.driver.names.orders))
        if call is None or self._reads_all or isinstance(call, Advance):
            return numbers
        number = getattr(call, "order", len(numbers) - 1)
        return numbers[number : number + 1]

    def _choose(self, outcome: Outcome) -> None:
        self.shop = outcome.shop
        self.rules.update(outcome.rules)
        self.rules.update([outcome.assumption] if outcome.assumption else [])

    def _compare_answer(
        self, outcome: Outcome, call: Call | None, answer: ServiceAnswer | None
    ) -> Iterator[Deviation]:
        """Report where the answer to a creation, an update or a cancellation differs from the model."""
        if answer is None or not answer.is_success or not isinstance(call, Create | Update | Cancel):
            return
        number = len(outcome.shop.orders) - 1 if isinstance(call, Create) else call.order
        if isinstance(answer.data, dict):
            yield from self._explain_differences(outcome, number, answer)

    def _compare_orders(self, outcome: Outcome, seen: Seen) -> Iterator[Deviation]:
        """Report where the orders read differ from the model."""
        for number, answer in seen.items():
            yield from self._explain_differences(outcome, number, answer)
            yield from self._refunds_differ(number, read_order(outcome.shop, number)["refunds"])

    def _explain_differences(
        self, outcome: Outcome, number: int, answer: ServiceAnswer
    ) -> Iterator[Deviation]:
        """Report differences: changes by the step under its rule, all others under the rule of the field.

        A difference in the state is reported alone, as it explains all others.
        """
        if not answer.is_success:
            yield Deviation(("END-03",), f"{answer.call} returned {answer.summary}", True)
            return
        expected = read_order(outcome.shop, number)
        known = number < len(self.shop.orders)
        changed = _changed_paths(read_order(self.shop, number) if known else {}, expected)
        is_end = known and isinstance(self.history[-1], Advance)
        rules = (
            ending_rules(self.shop.orders[number], outcome.shop.orders[number]) if is_end else outcome.rules
        )
        for place, text in first_state_difference(list(views_differ(expected, answer))):
            name = name_of(place)
            is_of_step = name in STATES and rules and (name in changed or name in STATUSES)
            yield Deviation(rules[:1] if is_of_step else rules_at(name, expected), text, name in STATES)

    def _refunds_differ(self, number: int, expected: Sequence[Json]) -> Iterator[Deviation]:
        for refund, wanted in zip(self.driver.read_refunds(number), expected, strict=True):
            for name in ("amount", "status"):
                if refund.at(name) != wanted[name]:
                    how = f"{name} of a refund is {shown(refund.at(name))}, not {shown(wanted[name])}"
                    yield Deviation(("SET-48",), how)
            flags = refund.at("flags")
            if isinstance(flags, list) and "is-refund" not in flags:
                yield Deviation(("SET-48", "SET-26"), "a refund lacks the flag is-refund")

    def _find_instability(self, shop: Shop, seen: Seen) -> Iterator[Deviation]:
        """Find changes without a cause, and missing changes (SET-32, TEV-01)."""
        for number, answer in seen.items():
            order = shop.orders[number]
            state = replace(order, webhooks=(), refunds=tuple(replace(r, webhooks=()) for r in order.refunds))
            before, state_before = self._seen.get(str(answer.at("id")), (answer, state))
            tags = [side.headers.get("ETag", "") for side in (before, answer)]
            is_same = tags[0] == tags[1]
            if all(tags) and (answer.data != before.data if is_same else state == state_before):
                self._is_untagged = True
                words = "does not change with the order" if is_same else "changes although the order does not"
                yield Deviation(("SET-32",), f"the ETag of an order {words}")
            self.stuck |= {rule for rule, at in MODIFIED if is_stuck(before, answer, at)}
            yield from _changed_constants(before, answer)
            yield from _events(before, answer)
            self._seen[str(answer.at("id"))] = answer, state


def _values_not_stored(created: ServiceAnswer, seen: Seen) -> Iterator[Deviation]:
    """Report values in the answer to a creation that differ in the first read."""
    for answer in seen.values():
        if answer.at("id") == created.at("id"):
            yield from (
                each._replace(rules=("END-03", *each.rules)) for each in _changed_constants(created, answer)
            )


def contradiction(outcome: Outcome, call: Call, answer: ServiceAnswer) -> Deviation:
    """Report a success instead of a refusal, or the reverse."""
    if answer.is_success:
        return Deviation(outcome.rules, f"{answer.call} is not refused: {answer.summary}", True, answer)
    is_guarded = answer.status == STALE and isinstance(call, GUARDED) and call.if_match
    rules = stale(call).rules if is_guarded else outcome.accepted
    return Deviation(rules, f"{answer.call} is refused: {answer.summary}", True, answer)


def proven_rules(answer: ServiceAnswer, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the rules of a refusal, or the rules on the status of a success."""
    if not answer.is_success:
        return outcomes[0].rules
    return {CREATED: ("END-02", "SET-07"), OK: ("SET-07",)}.get(answer.status, ())


def fits(outcome: Outcome, answer: ServiceAnswer) -> bool:
    """Whether an answer has an outcome's status and error type."""
    kind = answer.at("error.type")
    return outcome.status == answer.status and outcome.type in ("", "" if kind is MISSING else kind)


def report_wrong_status(outcome: Outcome, answer: ServiceAnswer, call: Call) -> Iterator[Deviation]:
    """Report a correct success or refusal with an incorrect status or error type."""
    if answer.is_success:
        first = {Create: ("END-02",), Cancel: ("SET-50",)}.get(type(call), ())
        yield Deviation((*first, "SET-07"), f"{answer.call} returned {answer.summary}, not {outcome.status}")
        return
    if answer.status != outcome.status:
        rule = RULE_OF_STATUS.get(outcome.status, STATUSES_RULE)
        yield Deviation(
            (rule,), f"{answer.call} returned {answer.summary}, not {outcome.status}", False, answer
        )
    elif outcome.type:
        how = f"{answer.call}: the error's type is {shown(answer.at('error.type'))}, not {outcome.type!r}"
        yield Deviation(("SET-04",), how, False, answer)


def _changed_paths(before: Json, expected: Json) -> set[str]:
    """Return the paths that a step should change."""
    return {name_of(leaf.place) for leaf in leaves(expected, before) if leaf.there != leaf.here}


def rules_at(name: str, expected: Json) -> tuple[str, ...]:
    """Return the rules of a path in an order; a default period has the rules of its method."""
    if name == PERIOD:
        attempt = expected["transactions"][0]
        facts = METHODS[attempt["payment_method"]]
        if attempt["expiration_period"] == facts.period:
            return facts.by_default
    return (rule_at(name),)


def rule_at(name: str) -> str:
    """Return the rule of a path in an order."""
    while name and name not in RULES:
        name = name.rpartition(".")[0]
    return RULES.get(name, "END-03")


def _changed_constants(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Deviation]:
    """Report changes of fields that no step may change."""
    for leaf in leaves(after.data, before.data):
        name = name_of(leaf.place)
        root = next((kept for kept in CONSTANT_FIELDS if name == kept or name.startswith(f"{kept}.")), None)
        if root is not None and leaf.there != leaf.here and leaf.here is not MISSING:
            yield Deviation(
                (rule_at(name),), f"{leaf.place} was {shown(leaf.here)}, and is {shown(leaf.there)} later"
            )


def is_stuck(before: ServiceAnswer, after: ServiceAnswer, below: str) -> bool:
    """Whether the status changed, but its modification time did not."""
    status, modified = (
        before.at(f"{below}{name}") == after.at(f"{below}{name}") for name in ("status", "modified")
    )
    return modified and not status


def first_state_difference(found: list[FieldDifference]) -> list[FieldDifference]:
    """Return only the first difference in the state, which explains all others; without one, return all."""
    return [each for each in found if name_of(each.place) in STATES][:1] or found


def _events(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Deviation]:
    """Check that each change of a transaction's status adds an event, and no event changes."""
    for index, (old, new) in enumerate(zip(before.listed(ATTEMPTS), after.listed(ATTEMPTS), strict=False)):
        problem = _event_problem(old, new)
        if problem:
            yield Deviation(("TEV-01",), f"transactions[{index}].events {problem}")


def _event_problem(old: Json, new: Json) -> str:
    """Describe the problem with the events of a transaction, compared with the earlier ones."""
    earlier, later = (each.get("events") for each in (old, new))
    if not isinstance(earlier, list) or not isinstance(later, list):
        return ""
    if later[: len(earlier)] != earlier:
        return "lose or change earlier ones"
    was, now = old.get("status"), new.get("status")
    is_noted = was == now or [event.get("event") for event in later[len(earlier) :]][-1:] == [now]
    return "" if is_noted else f"do not record the change from {shown(was)} to {shown(now)}"
