"""Converts records to plain JSON data and back by their type hints; errors name the path."""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from itertools import repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints, is_typeddict

from payment_sandbox.kernel.timeline import DueItem
from payment_sandbox.kernel.times import Period, PeriodError, timestamp
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import COMMAND_TYPES, Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.caller import SavedAnswer
from payment_sandbox.projects.store import ChangeSet, NotStored
from payment_sandbox.scenarios.effects import Fault

COMMANDS: dict[str, type[Command]] = {command.kind: command for command in COMMAND_TYPES}
TYPES = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}
PLAIN_TYPES: Final[frozenset[Any]] = frozenset({str, int, bool, float, type(None)})
INVALID_BYTES: Final = "surrogateescape"  # bytes that are not UTF-8 survive a round trip


def _parse_time(text: str) -> datetime:
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
    read: Callable[[Any], Any] | None = None  # None: the type itself decodes
    data: Any = str


PLAIN_FORMS: Final = (  # this tuple keeps the classes that time-freezing libraries replace in modules
    PlainForm(StrEnum, str),
    PlainForm(datetime, timestamp, _parse_time),
    PlainForm(Period, attrgetter("spelling"), Period.parse),
    PlainForm(bytes, partial(bytes.decode, errors=INVALID_BYTES), partial(str.encode, errors=INVALID_BYTES)),
    PlainForm(Fault, attrgetter("document"), Fault.from_data, dict),
)


def encode(value: Any) -> Any:
    """Encode a record, or any of its values, as plain JSON data."""
    kind: Any = type(value)
    return _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """Return the encoder of exactly this type; cached, because a state file encodes every change."""
    for plain in PLAIN_FORMS:
        if issubclass(kind, plain.kind):
            return plain.write
    if issubclass(kind, tuple(PLAIN_TYPES)):
        return lambda value: value
    if issubclass(kind, Mapping):
        return lambda mapping: {key: encode(inner) for key, inner in mapping.items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record_encoder(kind)
    return lambda items: [encode(inner) for inner in items]


def _record_encoder(kind: Any) -> Callable[[Any], dict[str, Any]]:
    names = tuple(_required_fields(kind))
    # the first name twice, so that ``attrgetter`` returns a tuple for a single field, too
    fields_of = attrgetter(*names, names[0])
    tag = {"kind": kind.kind} if issubclass(kind, Command) else {}

    def encode_record(record: Any) -> dict[str, Any]:
        data = dict(zip(names, fields_of(record), strict=False))
        for name, value in data.items():
            if type(value) not in PLAIN_TYPES:
                data[name] = encode(value)
        return {**tag, **data} if tag else data

    return encode_record


def decode(hint: Any, data: Any, path: str) -> Any:
    """Decode plain data into a record of this type.

    Raises:
        Invalid: a value has the wrong type; the error names the first such value.
    """
    try:
        return _decoder(hint)(data)
    except _WrongType as wrong:
        raise Invalid([Violation(f"{path}{wrong.path}", wrong.problem)]) from None


class _WrongType(Exception):
    """A value has the wrong type; each container prepends its step to ``path``."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path = ""

    def prepend(self, step: str) -> "_WrongType":
        self.path = f"{step}{self.path}"
        return self


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """Return the decoder of a type; cached, because an adopted project has many records."""
    if hint is Any:
        return lambda data: data
    if hint is Command:
        return _decode_command
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        inner = _decoder(next(argument for argument in arguments if argument is not type(None)))
        return lambda data: None if data is None else inner(data)
    if origin in (tuple, list, Iterable):
        return _sequence_decoder(origin, arguments)
    if origin in (dict, Mapping):
        return lambda data: _decode_values(
            _require_type(data, dict), dict.fromkeys(data, _decoder(arguments[1]))
        )
    return _value_decoder(hint)


def _value_decoder(hint: Any) -> Callable[[Any], Any]:
    if hint in PLAIN_TYPES:
        return lambda data: data if type(data) is hint else _decode_number(data, hint)
    for plain in PLAIN_FORMS:
        if issubclass(hint, plain.kind):
            return _plain_decoder(plain.read or hint, plain.data)
    return lambda data: _decode_record(hint, data)


def _decode_number(data: Any, hint: Any) -> Any:
    """Accept a whole number as a float, and refuse all other values."""
    if isinstance(data, bool) and hint is not bool:
        raise _WrongType("must not be true or false")
    return _require_type(data, (int, float) if hint is float else hint)


def _plain_decoder(read: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:
    """Return a decoder for one kind of plain data."""

    def decode_plain(data: Any) -> Any:
        try:
            return read(_require_type(data, kind))
        except (ValueError, PeriodError, OverflowError) as error:
            raise _WrongType(str(error)) from None

    return decode_plain


def _decode_record(kind: Any, data: Any) -> Any:
    values, decoders = _require_type(data, dict), _decoders(kind)
    if values.keys() != decoders.keys():
        required = _required_fields(kind)
        missing = [name for name, needed in required.items() if needed and name not in values]
        unknown = values.keys() - required.keys()
        if missing or unknown:
            raise _WrongType(f"has no {missing[0]!r}" if missing else f"has an unknown key {min(unknown)!r}")
    return kind(**_decode_values(values, decoders))


def _decode_values(values: Mapping[str, Any], decoders: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    name, decoded = "", {}
    try:
        for name, value in values.items():
            decoded[name] = decoders[name](value)
        return decoded
    except _WrongType as wrong:
        raise wrong.prepend(f".{name}") from None


def _decode_command(data: Any) -> Command:
    fields = dict(_require_type(data, dict))
    kind = COMMANDS.get(str(fields.pop("kind", None)))
    if kind is None:
        raise _WrongType(f"must have a kind, one of: {', '.join(COMMANDS)}")
    command: Command = _decode_record(kind, fields)
    return command


def _sequence_decoder(origin: Any, arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    is_homogeneous = origin is not tuple or arguments[-1] is Ellipsis
    decoders = [_decoder(argument) for argument in arguments if argument is not Ellipsis]

    def decode_items(data: Any) -> Any:
        items: list[Any] = _require_type(data, list)
        decoded: list[Any] = []
        if not is_homogeneous and len(items) != len(arguments):
            raise _WrongType(f"must have {len(arguments)} items")
        each = repeat(decoders[0]) if is_homogeneous else decoders
        try:
            for read, item in zip(each, items, strict=False):
                decoded.append(read(item))
        except _WrongType as wrong:
            raise wrong.prepend(f"[{len(decoded)}]") from None
        return decoded if origin is list else tuple(decoded)

    return decode_items


def _require_type(data: Any, kind: Any) -> Any:
    if not isinstance(data, kind):
        raise _WrongType(f"must be {TYPES.get(kind, 'a number')}")
    return data


@cache
def _decoders(kind: Any) -> dict[str, Callable[[Any], Any]]:
    """Return the decoders of a record's fields."""
    hints = get_type_hints(kind)
    return {name: _decoder(hints[name]) for name in _required_fields(kind)}


@cache
def _required_fields(kind: Any) -> dict[str, bool]:
    """Return the fields of a record, and whether each is required."""
    if is_dataclass(kind):
        return {
            item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(kind)
        }
    if is_typeddict(kind):
        return {name: name in kind.__required_keys__ for name in kind.__annotations__}
    return {name: name not in kind._field_defaults for name in kind._fields}


PROBLEM_LENGTH_MAX: Final = 500
FORMAT: Final = "payment-orders-sandbox/2"


class StoredIds(NamedTuple):
    """The state of the project identifier generator."""

    seed: int
    counts: dict[str, int]


class StateRefused(Exception):
    """A state cannot be used; it is unchanged."""


def join_problems(problem: object) -> str:
    """Format a problem as one line, truncated if it is long."""
    return " ".join(str(problem).split())[:PROBLEM_LENGTH_MAX]


class StepsInterrupted(NotStored):
    """A sequence of steps ended before its last step."""

    def __init__(self, failed: NotStored, done: str) -> None:
        super().__init__("", failed.reason, is_full=failed.is_full)
        self.args = (f"{done}, because the state could not be stored: {failed.reason}",)


class ServerRows(NamedTuple):
    """The rows that belong to the server as a whole."""

    ids: StoredIds | None = None
    deleted: tuple[str, ...] = ()
    salt: str | None = None  # in PostgreSQL, where another server continues with the same secrets


class AgendaEntry(NamedTuple):
    """A command, its due time, and the number that breaks ties."""

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
    answers: tuple[SavedAnswer, ...] = ()

    def change(self) -> ChangeSet:
        """Return a change set that adds all records."""
        orders = {order.id: order for order in self.orders}
        dues = {entry.sequence: DueItem(*entry) for entry in self.agenda}
        others = (self.credentials, self.qr_requests, self.deliveries, tuple(dues.values()))
        return ChangeSet(orders, *others, answers=tuple(sorted(self.answers, key=attrgetter("at"))))
