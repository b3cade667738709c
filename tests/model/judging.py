"""Compares a server with the model: every answer, and the later reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from tests.model.answers import (
    MISSING,
    OTHER_STATUS_RULE,
    RULE_BY_STATUS,
    RULES_BY_FIELD,
    Json,
    ServiceAnswer,
    describe,
    leaves,
    none_if_missing,
)
from tests.model.calling import Driver
from tests.model.specification import read_order, step
from tests.model.specification.calls import (
    Advance,
    Call,
    Cancel,
    Capture,
    Create,
    CreateRefund,
    Outcome,
    Update,
)
from tests.model.specification.changes import ending_rules
from tests.model.specification.records import METHODS, Order, Shop
from tests.model.specification.steps import stale_refusal

OK: Final = 200
CREATED: Final = 201
PRECONDITION_FAILED: Final = 412
CONDITIONAL_CALLS: Final = (Update, Cancel, Capture, CreateRefund)
PRESENCE_FIELDS: Final = ("completed", "reason", "order_url", "payment_url")
DETAIL_FIELDS: Final = ("vault_token", "first_authorised_transaction_id")
MODIFICATION_RULES: Final = (("ORD-19", ""), ("TX-06", "transactions[0]."))
TRANSACTIONS: Final = "transactions"
PERIOD_PATH: Final = "transactions.expiration_period"
STATUS_FIELDS: Final = ("status", "transactions", "transactions.status")
STATE_FIELDS: Final = ("status", "transactions.status", "transactions", "amount", "amount_details.captured")
"""The fields on which later calls depend: a difference in one of them ends the comparison."""
FIELD_RULES: Final = RULES_BY_FIELD | {
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
"""The fields that no step changes once an order exists."""


OrderReads = Mapping[int, ServiceAnswer]
"""The responses to reads of orders, by order number."""


class Deviation(NamedTuple):
    """A deviation from the model, and the violated rules.

    ``is_final`` means that the model no longer knows the state; ``refusal`` is the error response.
    """

    rules: tuple[str, ...]
    reason: str
    is_final: bool = False
    refusal: ServiceAnswer | None = None


class FieldDifference(NamedTuple):
    """A path in an order, and the difference in its value."""

    path: str
    text: str


def order_differences(expected: Json, answer: ServiceAnswer) -> Iterator[FieldDifference]:
    """Yield the fields in which an order differs from the expected order."""
    for name in ("status", "amount", "currency", "description"):
        if name in expected and (value := none_if_missing(answer.at(name))) != expected[name]:
            yield FieldDifference(name, f"{name} is {describe(value)}, not {describe(expected[name])}")
    yield from _presence_differences(expected, answer)
    yield from _attempt_differences(expected["transactions"], answer)
    yield from _detail_differences(expected, answer)


def _presence_differences(expected: Json, answer: ServiceAnswer) -> Iterator[FieldDifference]:
    for name in PRESENCE_FIELDS:
        if name in expected and (none_if_missing(answer.at(name)) is not None) != expected[name]:
            yield FieldDifference(name, f"{name} is {'missing' if expected[name] else 'present'}")
    flags = answer.at("flags")
    for name, is_expected in expected["flags"].items() if isinstance(flags, list) else ():
        if (name in flags) != is_expected:
            yield FieldDifference("flags", f"the flag {name} is {'missing' if is_expected else 'present'}")


def _attempt_differences(expected: Sequence[Json], answer: ServiceAnswer) -> Iterator[FieldDifference]:
    attempts = answer.at("transactions")
    if not isinstance(attempts, list) or len(attempts) != len(expected):
        yield FieldDifference(
            "transactions", f"transactions is {describe(attempts)}, not a list of {len(expected)}"
        )
        return
    for index, expected_attempt in enumerate(expected):
        for name, value in expected_attempt.items():
            path = f"transactions[{index}].{name}"
            actual: Any = none_if_missing(answer.at(path))
            if name in DETAIL_FIELDS:
                actual = none_if_missing(answer.at(f"transactions[{index}].payment_method_details.{name}"))
            if name in (*DETAIL_FIELDS, *PRESENCE_FIELDS):
                actual = actual is not None
            if actual != value:
                yield FieldDifference(path, f"{path} is {describe(actual)}, not {describe(value)}")


def _detail_differences(expected: Json, answer: ServiceAnswer) -> Iterator[FieldDifference]:
    for name, value in expected.get("amount_details", {}).items():
        actual = answer.at(f"amount_details.{name}")
        if actual != value and actual is not MISSING:
            yield FieldDifference(
                f"amount_details.{name}", f"amount_details.{name} is {describe(actual)}, not {value}"
            )
    if "order_line_details" in expected and isinstance(answer.at("order_line_details"), list):
        mine, theirs = (
            _comparable_details(each)
            for each in (expected["order_line_details"], answer.at("order_line_details"))
        )
        for entry in sorted(mine ^ theirs):
            words = "is missing" if entry in mine else "is present"
            yield FieldDifference(
                f"order_line_details.{entry[2]}", f"{entry[3]} {entry[0]} {entry[2]} {words}"
            )


def _comparable_details(details: Iterable[Json]) -> set[tuple[str, ...]]:
    names = ("merchant_order_line_id", "amount", "status", "quantity")
    return {tuple(str(entry.get(name)) for name in names) for entry in details}


def count_differences(shop: Shop, reads: OrderReads) -> int:
    """Count the differences between the reads and a state of the model."""
    return sum(1 for number in reads for _ in order_differences(read_order(shop, number), reads[number]))


def remove_indexes(path: str) -> str:
    """Remove the list indexes from a path."""
    return "".join(part.partition("]")[2] if "]" in part else part for part in path.split("["))


class Judge:
    """A comparison of a server with the model, call by call."""

    def __init__(self, driver: Driver, shop: Shop, *, reads_all: bool = True) -> None:
        """With ``reads_all``, read all orders after each step; otherwise, read only the step's order."""
        self.driver = driver
        self._reads_all = reads_all
        self.shop = shop
        self.history: list[Call] = []
        self.rules: Counter[str] = Counter()
        self.unspecified_calls = 0
        self.answer: ServiceAnswer | None = None  # the last call's answer, if the model allows it
        self._is_untagged = False
        # rules on the modification times that did not change with the status
        self.unchanged_times: set[str] = set()
        self._previous_reads: dict[str, tuple[ServiceAnswer, Order]] = {}

    def make_call(self, call: Call, *, reads: bool = True) -> list[Deviation]:
        """Make a call; report where the answer and the later reads differ from the model.

        Without ``reads``, no reads follow a correctly refused call. Once the server sends an incorrect entity
        tag, later calls send no tag.
        """
        self.answer = None
        call_to_make = self._drop_stale_tag(call)
        outcomes = step(self.shop, call_to_make) if call_to_make is not None else ()
        if call_to_make is None or not outcomes:
            self.unspecified_calls += 1
            return []
        self.history.append(call_to_make)
        return self._judge_answer(call_to_make, outcomes, self.driver.send(call_to_make), reads=reads)

    def _judge_answer(
        self, call: Call, outcomes: Sequence[Outcome], answer: ServiceAnswer, *, reads: bool
    ) -> list[Deviation]:
        possible = [each for each in outcomes if (each.status < 400) == answer.is_success]
        if not possible:
            return [report_contradiction(outcomes[0], call, answer)]
        exact = [each for each in possible if is_exact(each, answer)]
        allowed = exact or possible
        self.answer = answer
        self.rules.update(proven_rules(answer, allowed))
        differences = [] if exact else list(report_wrong_status(possible[0], answer, call))
        return differences + (self.compare_reads(allowed, call, answer) if answer.is_success or reads else [])

    def _drop_stale_tag(self, call: Call) -> Call | None:
        """Remove the entity tag from a call after an incorrect tag; None if the call only tests the tag."""
        if not self._is_untagged or not isinstance(call, CONDITIONAL_CALLS):
            return call
        return None if call.if_match == "stale" else replace(call, if_match="")

    def compare_reads(
        self, allowed: Sequence[Outcome] = (), call: Call | None = None, answer: ServiceAnswer | None = None
    ) -> list[Deviation]:
        """Read the orders; compare them with the closest allowed outcome, or with the current state.

        If the ``answer`` to the call is an order, compare it, too.
        """
        reads = {number: self.driver.read(number) for number in self._numbers_to_read(call)}
        outcomes = allowed or (Outcome(200, self.shop),)
        chosen = min(outcomes, key=lambda outcome: count_differences(outcome.shop, reads))
        deviations = [*self._compare_answer(chosen, call, answer), *self._compare_orders(chosen, reads)]
        self.rules.update(["END-03"] if reads else [])
        deviations += (
            _values_not_stored(answer, reads) if isinstance(call, Create) and answer is not None else ()
        )
        deviations += self._find_instability(chosen.shop, reads)
        self._adopt_outcome(chosen)
        return deviations

    def _numbers_to_read(self, call: Call | None) -> range:
        """Return the numbers of the orders to read after a call."""
        numbers = range(len(self.driver.ids.orders))
        if call is None or self._reads_all or isinstance(call, Advance):
            return numbers
        number = getattr(call, "order", len(numbers) - 1)
        return numbers[number : number + 1]

    def _adopt_outcome(self, outcome: Outcome) -> None:
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

    def _compare_orders(self, outcome: Outcome, reads: OrderReads) -> Iterator[Deviation]:
        """Report where the orders read differ from the model."""
        for number, answer in reads.items():
            yield from self._explain_differences(outcome, number, answer)
            yield from self._compare_refunds(number, read_order(outcome.shop, number)["refunds"])

    def _explain_differences(
        self, outcome: Outcome, number: int, answer: ServiceAnswer
    ) -> Iterator[Deviation]:
        """Report differences under the step's rule if the step changes the field, else the field's rule.

        A difference in the state is reported alone, because it explains all others.
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
        for path, text in first_state_difference(list(order_differences(expected, answer))):
            name = remove_indexes(path)
            is_caused_by_step = name in STATE_FIELDS and rules and (name in changed or name in STATUS_FIELDS)
            yield Deviation(
                rules[:1] if is_caused_by_step else rules_at(name, expected), text, name in STATE_FIELDS
            )

    def _compare_refunds(self, number: int, expected: Sequence[Json]) -> Iterator[Deviation]:
        for refund, wanted in zip(self.driver.read_refunds(number), expected, strict=True):
            for name in ("amount", "status"):
                if refund.at(name) != wanted[name]:
                    reason = (
                        f"{name} of a refund is {describe(refund.at(name))}, not {describe(wanted[name])}"
                    )
                    yield Deviation(("SET-48",), reason)
            flags = refund.at("flags")
            if isinstance(flags, list) and "is-refund" not in flags:
                yield Deviation(("SET-48", "SET-26"), "a refund lacks the flag is-refund")

    def _find_instability(self, shop: Shop, reads: OrderReads) -> Iterator[Deviation]:
        """Find changes that have no cause, and missing changes (SET-32, TEV-01)."""
        for number, answer in reads.items():
            order = shop.orders[number]
            state = replace(order, webhooks=(), refunds=tuple(replace(r, webhooks=()) for r in order.refunds))
            before, state_before = self._previous_reads.get(str(answer.at("id")), (answer, state))
            tags = [side.headers.get("ETag", "") for side in (before, answer)]
            is_same = tags[0] == tags[1]
            if all(tags) and (answer.data != before.data if is_same else state == state_before):
                self._is_untagged = True
                words = "does not change with the order" if is_same else "changes although the order does not"
                yield Deviation(("SET-32",), f"the ETag of an order {words}")
            self.unchanged_times |= {
                rule for rule, at in MODIFICATION_RULES if is_time_unchanged(before, answer, at)
            }
            yield from _changed_constants(before, answer)
            yield from _check_events(before, answer)
            self._previous_reads[str(answer.at("id"))] = answer, state


def _values_not_stored(created: ServiceAnswer, reads: OrderReads) -> Iterator[Deviation]:
    """Report values in the answer to a create call that differ in the first read."""
    for answer in reads.values():
        if answer.at("id") == created.at("id"):
            yield from (
                each._replace(rules=("END-03", *each.rules)) for each in _changed_constants(created, answer)
            )


def report_contradiction(outcome: Outcome, call: Call, answer: ServiceAnswer) -> Deviation:
    """Report a success instead of a refusal, or the reverse."""
    if answer.is_success:
        return Deviation(outcome.rules, f"{answer.call} is not refused: {answer.summary}", True, answer)
    is_conditional = (
        answer.status == PRECONDITION_FAILED and isinstance(call, CONDITIONAL_CALLS) and call.if_match
    )
    rules = stale_refusal(call).rules if is_conditional else outcome.accepted
    return Deviation(rules, f"{answer.call} is refused: {answer.summary}", True, answer)


def proven_rules(answer: ServiceAnswer, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Return the rules that a refusal proves, or for a success, the rules on its status."""
    if not answer.is_success:
        return outcomes[0].rules
    return {CREATED: ("END-02", "SET-07"), OK: ("SET-07",)}.get(answer.status, ())


def is_exact(outcome: Outcome, answer: ServiceAnswer) -> bool:
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
        rule = RULE_BY_STATUS.get(outcome.status, OTHER_STATUS_RULE)
        yield Deviation(
            (rule,), f"{answer.call} returned {answer.summary}, not {outcome.status}", False, answer
        )
    elif outcome.type:
        reason = (
            f"{answer.call}: the error's type is {describe(answer.at('error.type'))}, not {outcome.type!r}"
        )
        yield Deviation(("SET-04",), reason, False, answer)


def _changed_paths(before: Json, expected: Json) -> set[str]:
    """Return the paths that a step should change."""
    return {remove_indexes(leaf.path) for leaf in leaves(expected, before) if leaf.value != leaf.reference}


def rules_at(name: str, expected: Json) -> tuple[str, ...]:
    """Return the rules for a path in an order; a default period has the rules of its method."""
    if name == PERIOD_PATH:
        attempt = expected["transactions"][0]
        facts = METHODS[attempt["payment_method"]]
        if attempt["expiration_period"] == facts.period:
            return facts.default_period_rules
    return (rule_at(name),)


def rule_at(name: str) -> str:
    """Return the rule for a path in an order."""
    while name and name not in FIELD_RULES:
        name = name.rpartition(".")[0]
    return FIELD_RULES.get(name, "END-03")


def _changed_constants(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Deviation]:
    """Report changes to immutable fields."""
    for leaf in leaves(after.data, before.data):
        name = remove_indexes(leaf.path)
        root = next(
            (constant for constant in CONSTANT_FIELDS if name == constant or name.startswith(f"{constant}.")),
            None,
        )
        if root is not None and leaf.value != leaf.reference and leaf.reference is not MISSING:
            yield Deviation(
                (rule_at(name),),
                f"{leaf.path} was {describe(leaf.reference)}, and is {describe(leaf.value)} later",
            )


def is_time_unchanged(before: ServiceAnswer, after: ServiceAnswer, prefix: str) -> bool:
    """Whether the status changed but its modification time did not."""
    status, modified = (
        before.at(f"{prefix}{name}") == after.at(f"{prefix}{name}") for name in ("status", "modified")
    )
    return modified and not status


def first_state_difference(differences: list[FieldDifference]) -> list[FieldDifference]:
    """Return only the first difference in the state, which explains all others; if none, return them all."""
    return [each for each in differences if remove_indexes(each.path) in STATE_FIELDS][:1] or differences


def _check_events(before: ServiceAnswer, after: ServiceAnswer) -> Iterator[Deviation]:
    """Check that each change to a transaction's status adds an event, and that no event changes."""
    for index, (old, new) in enumerate(
        zip(before.list_at(TRANSACTIONS), after.list_at(TRANSACTIONS), strict=False)
    ):
        problem = _event_problem(old, new)
        if problem:
            yield Deviation(("TEV-01",), f"transactions[{index}].events {problem}")


def _event_problem(old: Json, new: Json) -> str:
    """Describe the problem with the events of a transaction, compared with its earlier events."""
    earlier, later = (each.get("events") for each in (old, new))
    if not isinstance(earlier, list) or not isinstance(later, list):
        return ""
    if later[: len(earlier)] != earlier:
        return "lack or change earlier events"
    was, now = old.get("status"), new.get("status")
    is_recorded = was == now or [event.get("event") for event in later[len(earlier) :]][-1:] == [now]
    return "" if is_recorded else f"do not record the change from {describe(was)} to {describe(now)}"
