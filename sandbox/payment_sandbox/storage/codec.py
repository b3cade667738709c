"""Converts records to plain JSON data and back by their type hints; errors name the path."""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from itertools import repeat
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from payment_sandbox.kernel.timeline import Due
from payment_sandbox.kernel.times import Period, PeriodError, timestamp
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import ALL, Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.store import ChangeSet, Configuration, Counters
from payment_sandbox.scenarios.effects import Fault

COMMANDS: dict[str, type[Command]] = {command.kind: command for command in ALL}
NAMES = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}
AS_THEY_ARE: Final[frozenset[Any]] = frozenset({str, int, bool, float, type(None)})
UNREADABLE: Final = "surrogateescape"  # bytes that are not UTF-8 survive a round trip


def _moment(text: str) -> datetime:
    """Parse a time with an offset; without an offset, it would depend on the host's time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset such as +00:00")
    return moment.astimezone(UTC)


class PlainForm(NamedTuple):
    """The encoder and decoder of one type."""

    kind: Any
    write: Callable[[Any], Any]
    read: Callable[[Any], Any] | None = None  # None: the type itself
    data: Any = str


PLAIN: Final = (  # which keeps the classes that time-freezing libraries replace in modules
    PlainForm(StrEnum, str),
    PlainForm(datetime, timestamp, _moment),
    PlainForm(Period, attrgetter("spelling"), Period.parse),
    PlainForm(bytes, partial(bytes.decode, errors=UNREADABLE), partial(str.encode, errors=UNREADABLE)),
    PlainForm(Fault, attrgetter("document"), Fault.read, dict),
)


def encode(value: Any) -> Any:
    """Encode a record, or any of its values, as plain JSON data."""
    kind: Any = type(value)
    return _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """Return the encoder of exactly this type; cached, because a state file encodes every change."""
    for plain in PLAIN:
        if issubclass(kind, plain.kind):
            return plain.write
    if issubclass(kind, tuple(AS_THEY_ARE)):
        return lambda value: value
    if issubclass(kind, Mapping):
        return lambda mapping: {key: encode(inner) for key, inner in mapping.items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record_encoder(kind)
    return lambda items: [encode(inner) for inner in items]


def _record_encoder(kind: Any) -> Callable[[Any], dict[str, Any]]:
    names = tuple(_required_fields(kind))
    fields_of = attrgetter(
        *names, names[0]
    )  # the first name twice, so that ``attrgetter`` returns a tuple for a single field, too
    tag = {"kind": kind.kind} if issubclass(kind, Command) else {}

    def encoded(record: Any) -> dict[str, Any]:
        shown = dict(zip(names, fields_of(record), strict=False))
        for name, value in shown.items():
            if type(value) not in AS_THEY_ARE:
                shown[name] = encode(value)
        return {**tag, **shown} if tag else shown

    return encoded


def decode(hint: Any, data: Any, path: str) -> Any:
    """Decode plain data into a record of this type.

    Raises:
        Invalid: a value has the wrong type; the error names the first such value.
    """
    try:
        return _decoder(hint)(data)
    except _Wrong as wrong:
        raise Invalid([Violation(f"{path}{wrong.path}", wrong.problem)]) from None


class _Wrong(Exception):
    """A value has the wrong type; each container prepends its step to ``path``."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path = ""

    def within(self, step: str) -> "_Wrong":
        self.path = f"{step}{self.path}"
        return self


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """Return the decoder of a type; cached, because an adopted project has many records."""
    if hint is Any:
        return lambda data: data
    if hint is Command:
        return _command
    origin, arms = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = _decoder(next(arm for arm in arms if arm is not type(None)))
        return lambda data: None if data is None else inner(data)
    if origin in (tuple, list, Iterable):
        return _sequence_decoder(origin, arms)
    if origin in (dict, Mapping):
        return lambda data: _values(_expect(data, dict), dict.fromkeys(data, _decoder(arms[1])))
    return _value_decoder(hint)


def _value_decoder(hint: Any) -> Callable[[Any], Any]:
    if hint in AS_THEY_ARE:
        return lambda data: data if type(data) is hint else _number(data, hint)
    for plain in PLAIN:
        if issubclass(hint, plain.kind):
            return _reading(plain.read or hint, plain.data)
    return lambda data: _record(hint, data)


def _number(data: Any, hint: Any) -> Any:
    """Accept a whole number as a float, and refuse all other values."""
    if isinstance(data, bool) and hint is not bool:
        raise _Wrong("must not be true or false")
    return _expect(data, (int, float) if hint is float else hint)


def _reading(read: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
    """Return a decoder for one kind of plain data."""

    def decoded(data: Any) -> Any:
        try:
            return read(_expect(data, kind))
        except (ValueError, PeriodError, OverflowError) as error:
            raise _Wrong(str(error)) from None

    return decoded


def _record(kind: Any, data: Any) -> Any:
    given, decoders = _expect(data, dict), _decoders(kind)
    if given.keys() != decoders.keys():
        required = _required_fields(kind)
        missing = [name for name, needed in required.items() if needed and name not in given]
        unknown = given.keys() - required.keys()
        if missing or unknown:
            raise _Wrong(f"has no {missing[0]!r}" if missing else f"has an unknown key {min(unknown)!r}")
    return kind(**_values(given, decoders))


def _values(given: Mapping[str, Any], decoders: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    name, values = "", {}
    try:
        for name, value in given.items():
            values[name] = decoders[name](value)
        return values
    except _Wrong as wrong:
        raise wrong.within(f".{name}") from None


def _command(data: Any) -> Command:
    given = dict(_expect(data, dict))
    kind = COMMANDS.get(str(given.pop("kind", None)))
    if kind is None:
        raise _Wrong(f"must have a kind, one of: {', '.join(COMMANDS)}")
    command: Command = _record(kind, given)
    return command


def _sequence_decoder(origin: Any, arms: tuple[Any, ...]) -> Callable[[Any], Any]:
    is_alike = origin is not tuple or arms[-1] is Ellipsis
    decoders = [_decoder(arm) for arm in arms if arm is not Ellipsis]

    def decoded(data: Any) -> Any:
        items: list[Any] = _expect(data, list)
        made: list[Any] = []
        if not is_alike and len(items) != len(arms):
            raise _Wrong(f"must have {len(arms)} items")
        each = repeat(decoders[0]) if is_alike else decoders
        try:
            for read, item in zip(each, items, strict=False):
                made.append(read(item))
        except _Wrong as wrong:
            raise wrong.within(f"[{len(made)}]") from None
        return made if origin is list else tuple(made)

    return decoded


def _expect(data: Any, kind: Any) -> Any:
    if not isinstance(data, kind):
        raise _Wrong(f"must be {NAMES.get(kind, 'a number')}")
    return data


@cache
def _decoders(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the decoders of a record's fields."""
    hints = _hints(kind)
    return {name: _decoder(hints[name]) for name in _required_fields(kind)}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}


@cache
def _required_fields(kind: Any) -> dict[str, bool]:
    """Return the fields of a record, and whether each is required."""
    if is_dataclass(kind):
        return {
            item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(kind)
        }
    return {name: name not in kind._field_defaults for name in kind._fields}


PROBLEM_LENGTH_MAX: Final = 500
FORMAT: Final = "payment-orders-sandbox/2"


class StoredIds(NamedTuple):
    """The state of the project identifier generator."""

    seed: int
    counts: dict[str, int]


class StateRefused(Exception):
    """A state file cannot be used; it is unchanged."""


def join_problems(problem: object) -> str:
    """Join the problems into one line, and truncate it."""
    return " ".join(str(problem).split())[:PROBLEM_LENGTH_MAX]


class NotStored(Exception):
    """The state could not be stored in ``place`` or read from there, so nothing has changed."""

    def __init__(self, place: str, reason: str, *, is_full: bool) -> None:
        super().__init__(f"nothing has changed, because {place} could not be used: {reason}")
        self.reason = reason
        self.is_full = is_full


class StepsInterrupted(NotStored):
    """A sequence of steps ended before its last step."""

    def __init__(self, failed: NotStored, done: str) -> None:
        super().__init__("", failed.reason, is_full=failed.is_full)
        self.args = (f"{done}, because the state could not be stored: {failed.reason}",)


class ServerRows(NamedTuple):
    """The rows of a state file that belong to the server as a whole."""

    ids: StoredIds | None = None
    deleted: tuple[str, ...] = ()


class AgendaEntry(NamedTuple):
    """A command, its due time, and the number that orders ties."""

    at: datetime
    sequence: int
    command: Command


@dataclass(frozen=True)
class StoredRecords:
    """The records of a project, by kind."""

    agenda: tuple[AgendaEntry, ...]
    orders: tuple[Order, ...]
    credentials: tuple[Credential, ...]
    qr_requests: tuple[QrRequest, ...]
    deliveries: tuple[Delivery, ...]

    def change(self) -> ChangeSet:
        """Return a change set that adds all records."""
        orders = {order.id: order for order in self.orders}
        dues = tuple(Due(*entry) for entry in self.agenda)
        return ChangeSet(orders, self.credentials, self.qr_requests, self.deliveries, dues)


@dataclass(frozen=True)
class FormattedDocument:
    """A document that begins with the name of its format."""

    format: str


class UnmetCondition(NamedTuple):
    """A condition of a rule that an attempt did not meet."""

    condition: str
    expected: Any
    actual: Any


class NearestMiss(NamedTuple):
    """The closest rule without a match, by its index."""

    rule: int
    differs: tuple[UnmetCondition, ...]


class TakenDecision(NamedTuple):
    """A scenario's decision for an attempt: the matching ``rule``, or the nearest miss, if any."""

    transaction_id: str
    scenario: str
    rule: int | None
    nearest: NearestMiss | None = None

    def explanation(self) -> Mapping[str, Any]:
        """Return the decision as the journal explains it."""
        nearest = {} if self.rule is not None else {"nearest": encode(self.nearest)}
        return {"scenario": self.scenario, "rule": self.rule, **nearest}


@dataclass(frozen=True)
class Snapshot(StoredRecords, Counters, Configuration, FormattedDocument):
    """The whole state of a project, except its ids and its key."""

    decisions: tuple[TakenDecision, ...] = ()
