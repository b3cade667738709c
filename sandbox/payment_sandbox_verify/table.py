"""The table of the specification: what is asked of an order in which state, and what the answer must be."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from payment_sandbox_verify.answer import ServiceAnswer, value_at
from payment_sandbox_verify.checks import (
    CannotTell,
    Check,
    Checks,
    ValueKind,
    absent,
    accepted,
    holds,
    kind,
    one_of,
    refused,
    same,
)
from payment_sandbox_verify.probing import Probe
from payment_sandbox_verify.service import ORDERS, Service

RULE: Final = re.compile(r"\b[A-Z]+-\d\d\b")
OK: Final = 200
CREATED: Final = 201
ATTEMPT: Final = "transactions[0]."
DETAILS: Final = "order_line_details"
AMOUNTS: Final = "amount_details"
Fields: TypeAlias = Mapping[str, Any]
"""Names of fields and their values, to send or to expect."""
Prepare = Callable[[Service], ServiceAnswer]
"""Brings an order into the state in which it is asked about."""
Ask = Callable[[Service, ServiceAnswer], ServiceAnswer]
"""Makes a request about the prepared order."""
Answered = Callable[[str, str, ServiceAnswer], Checks]
"""Checks whether a request, in words, was answered as a rule wants."""


# How a request is answered


def succeeds(rule: str, words: str, answer: ServiceAnswer) -> Checks:
    """With success."""
    yield holds(rule, answer.is_success, f"{words} is {answer.summary}")


def needed(rule: str, words: str, answer: ServiceAnswer) -> Checks:
    """With success, without which the following rows cannot be asked.

    Raises:
        CannotTell: it is refused.
    """
    yield from succeeds(rule, words, answer)
    if not answer.is_success:
        raise CannotTell(f"{words} is {answer.summary}: {answer.at('error.value')}")


def created(rule: str, words: str, answer: ServiceAnswer) -> Checks:
    """With 201."""
    yield from accepted(rule, answer)


def done(rule: str, words: str, answer: ServiceAnswer) -> Checks:
    """With 200, without which the following rows cannot be asked."""
    yield from needed(rule, words, answer)
    yield holds("SET-07", answer.status == OK, f"{words} is {answer.summary}, not 200")


def made(rule: str, words: str, answer: ServiceAnswer) -> Checks:
    """With 201; the same."""
    yield from needed(rule, words, answer)
    yield holds("SET-07", answer.status == CREATED, f"{words} is {answer.summary}, not 201")


def is_answered(status: int) -> Answered:
    """With this very status."""

    def answered(rule: str, words: str, answer: ServiceAnswer) -> Checks:
        yield holds(rule, answer.status == status, f"{words} is {answer.summary}")

    return answered


def is_refused(status: int = 400, error: str | None = None, place: str | None = None) -> Answered:
    """With a refusal of this status and type, at this place."""

    def answered(rule: str, words: str, answer: ServiceAnswer) -> Checks:
        yield from refused(rule, answer, status, error, place)

    return answered


def wrong_at(place: str | None = None) -> Answered:
    """With a refusal that names the place."""
    return is_refused(400, "ValidationError", place)


# What an answer has


class Marker(NamedTuple):
    """An expectation that is no plain value."""

    words: str


SENT: Final = Marker("what was sent: in this request, or when the order was made")
KEPT: Final = Marker("what the prepared order has at the same place")
ABSENT: Final = Marker("nothing")


class At(NamedTuple):
    """What the prepared order has at another place."""

    place: str


class AnyOf(NamedTuple):
    """One of some values."""

    values: Sequence[object]


class TableRow(NamedTuple):
    """A request, the rules that its success or refusal is about, and the fields of the answer.

    The keys of ``fields`` are rules and places, such as ``"ORD-19 TX-06 created modified"``. A difference is
    told in ``words``, or with the call if there are none.
    """

    rules: str
    ask: Ask
    answered: Answered = succeeds
    fields: Fields = {}
    words: str = ""


class TableSection(NamedTuple):
    """Rows about an order in one state; ``before`` are the fields that it has in this state already."""

    name: str
    prepare: Prepare | None
    before: Fields = {}
    rows: Sequence[TableRow] = ()
    spends: bool = False

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it is about, each once."""
        words = [*self.before, *(word for row in self.rows for word in (row.rules, *row.fields))]
        return tuple(dict.fromkeys(RULE.findall(" ".join(words))))

    @property
    def probe(self) -> Probe:
        """What carries it out."""
        return Probe(lambda service: carried_out(self, service), self.rules, self.spends, self.name)


NO_ORDER: Final = ServiceAnswer("", "", None, 0, {}, None)


def carried_out(section: TableSection, service: Service) -> Checks:
    """Bring an order into the state, make each request, and compare."""
    order = section.prepare(service) if section.prepare is not None else NO_ORDER
    yield from _compared(section.before, order, order)
    refused = [""]
    for row in section.rows:
        answer = row.ask(service, order)
        words = row.words or answer.call
        for rule in row.rules.split():
            yield from row.answered(rule, words, answer)
        if answer.is_success:
            yield from _compared(row.fields, answer, order)
        elif row.fields:
            refused.append(f"{words} is {answer.summary}: {answer.at('error.value')}")
    if refused[-1]:
        raise CannotTell(refused[-1])


def _compared(fields: Fields, answer: ServiceAnswer, order: ServiceAnswer) -> Iterator[Check]:
    for key, expected in fields.items():
        rules = RULE.findall(key)
        for place in key.split()[len(rules) :]:
            yield from (_field(rule, answer, place, expected, order) for rule in rules)


def _field(rule: str, answer: ServiceAnswer, place: str, expected: object, order: ServiceAnswer) -> Check:
    """Compare one field."""
    if expected is ABSENT:
        return absent(rule, answer, place)
    if isinstance(expected, ValueKind):
        return kind(rule, answer, place, expected)
    if isinstance(expected, AnyOf):
        return one_of(rule, answer, place, expected.values)
    if isinstance(expected, Marker):
        sent = answer.sent if isinstance(answer.sent, dict) else order.sent
        expected = value_at(sent, place) if expected is SENT else order.at(place)
    return same(rule, answer, place, order.at(expected.place) if isinstance(expected, At) else expected)


# What is asked


def _body(fields: Mapping[str, object]) -> dict[str, Any]:
    """The fields to send, of which some are made anew each time."""
    return {name: value() if callable(value) else value for name, value in fields.items()}


def orders(*transactions: object, **fields: object) -> Prepare:
    """An order that was just made."""
    return lambda service: service.order(*transactions, **_body(fields))


def pays(*transactions: object, **fields: object) -> Prepare:
    """An order that the customer was sent to pay."""
    return lambda service: service.paid(*transactions, **_body(fields))[0]


def creates(*transactions: object, **fields: object) -> Ask:
    """Create an order, which may be refused."""
    return lambda service, order: service.create(*transactions, **_body(fields))


def reads(*blocks: str) -> Ask:
    """Read the order with these blocks."""
    return lambda service, order: service.read(order, *blocks)


def takes(what: str, body: object = None, **options: Any) -> Ask:
    """Capture or void."""
    return lambda service, order: service.take(order, what, body, **options)


def refunds(body: object) -> Ask:
    """Refund the order."""
    return lambda service, order: service.refund(order, body)


def asks(method: str, path: str = ORDERS + "{id}/", body: object = None, **options: Any) -> Ask:
    """Make any call; ``{id}`` in the path is the order's, and the path that of the order if none is given."""

    def ask(service: Service, order: ServiceAnswer) -> ServiceAnswer:
        sent = _body(body) if isinstance(body, dict) else body
        return service.call(method, path.replace("{id}", str(order.at("id"))), sent, **options)

    return ask
