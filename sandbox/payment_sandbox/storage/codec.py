"""Converts records to plain JSON data and back by their type hints; errors name the path."""

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from payment_sandbox.kernel.times import Period, PeriodError, timestamp
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.commands import ALL, Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.faults import Use

COMMANDS: dict[str, type[Command]] = {command.kind: command for command in ALL}
NAMES = {dict: "an object", list: "a list", str: "a string", int: "a whole number", bool: "true or false"}
MOMENT = (datetime,)  # in a tuple, because time-freezing libraries replace the class in modules
AS_THEY_ARE = frozenset({str, int, bool, float, type(None)})
PLAIN: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (StrEnum, str),
    ((bool, int, float, str, type(None)), lambda value: value),
    (datetime, timestamp),
    (Period, lambda value: value.spelling),
    (bytes, bytes.decode),
)


def encode(value: Any) -> Any:
    """A record or any of its values as plain data."""
    kind: Any = type(value)
    return _encoder(kind)(value)


@cache
def _encoder(kind: Any) -> Callable[[Any], Any]:
    """The encoder for exactly this type; cached, since a state file encodes every change."""
    for known, plain in PLAIN:
        if issubclass(kind, known):
            return plain
    if issubclass(kind, Mapping):
        return lambda mapping: {key: encode(inner) for key, inner in mapping.items()}
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _record_encoder(kind)
    return lambda items: [encode(inner) for inner in items]


def _record_encoder(kind: Any) -> Callable[[Any], dict[str, Any]]:
    names = tuple(_required(kind))
    fields_of = attrgetter(*names, names[0])  # the first again, so that a single field gives a tuple too
    tag = {"kind": kind.kind} if issubclass(kind, Command) else {}

    def encoded(record: Any) -> dict[str, Any]:
        shown = dict(zip(names, fields_of(record), strict=False))
        for name, value in shown.items():
            if type(value) not in AS_THEY_ARE:
                shown[name] = encode(value)
        return {**tag, **shown} if tag else shown

    return encoded


def decode(hint: Any, data: Any, path: str) -> Any:
    """Plain data as a record of this type.

    Raises:
        Invalid: names the first value that has the wrong type.
    """
    if hint is Any:
        return data
    if hint is Command:
        return _command(data, path)
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        inner = next(arm for arm in get_args(hint) if arm is not type(None))
        return None if data is None else decode(inner, data, path)
    if origin in (tuple, list):
        return _sequence(hint, origin, data, path)
    if origin in (dict, Mapping):
        inner = get_args(hint)[1]
        fields_given = _expect(data, dict, path)
        return {key: decode(inner, value, f"{path}.{key}") for key, value in fields_given.items()}
    return _value(hint, data, path)


def _value(hint: Any, data: Any, path: str) -> Any:
    if hint in (int, str, bool, float):
        kind = (int, float) if hint is float else hint
        if isinstance(data, bool) and hint is not bool:
            raise _wrong(path, "must not be true or false")
        return _expect(data, kind, path)
    if hint is bytes:
        return str(_expect(data, str, path)).encode()
    try:
        if issubclass(hint, MOMENT[0]):
            return _moment(_expect(data, str, path))
        if hint is Period:
            return Period.parse(_expect(data, str, path))
        if issubclass(hint, StrEnum):
            return hint(data)
    except (ValueError, PeriodError, OverflowError) as error:
        raise _wrong(path, str(error)) from None
    return _record(hint, data, path)


def _moment(text: str) -> datetime:
    """A time; it must have an offset, or it would depend on the host."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset such as +00:00")
    return moment.astimezone(UTC)


def _record(kind: Any, data: Any, path: str) -> Any:
    given = _expect(data, dict, path)
    hints, required = _hints(kind), _required(kind)
    unknown = given.keys() - required.keys()
    missing = [name for name, needed in required.items() if needed and name not in given]
    if unknown or missing:
        problem = f"has no {missing[0]!r}" if missing else f"has an unknown key {min(unknown)!r}"
        raise _wrong(path, problem)
    return kind(**{name: decode(hints[name], value, f"{path}.{name}") for name, value in given.items()})


def _command(data: Any, path: str) -> Command:
    given = dict(_expect(data, dict, path))
    kind = COMMANDS.get(str(given.pop("kind", None)))
    if kind is None:
        raise _wrong(path, f"must have a kind, one of: {', '.join(COMMANDS)}")
    command: Command = _record(kind, given, path)
    return command


def _sequence(hint: Any, origin: Any, data: Any, path: str) -> Any:
    arms = get_args(hint)
    items = _expect(data, list, path)
    if origin is tuple and arms[-1] is not Ellipsis:
        if len(items) != len(arms):
            raise _wrong(path, f"must have {len(arms)} items")
        return tuple(decode(arm, item, path) for arm, item in zip(arms, items, strict=True))
    return origin(decode(arms[0], item, f"{path}[{index}]") for index, item in enumerate(items))


def _expect(data: Any, kind: Any, path: str) -> Any:
    if not isinstance(data, kind):
        raise _wrong(path, f"must be {NAMES.get(kind, 'a number')}")
    return data


def _wrong(path: str, problem: str) -> Invalid:
    return Invalid([Violation(path, problem)])


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}


@cache
def _required(kind: Any) -> dict[str, bool]:
    """The fields of a record, and whether each is required."""
    if is_dataclass(kind):
        return {
            item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(kind)
        }
    return {name: name not in kind._field_defaults for name in kind._fields}


PROBLEM_LENGTH_MAX: Final = 500
FORMAT: Final = "payment-orders-sandbox/2"


class StoredIds(NamedTuple):
    """Where the identifiers of new projects go on."""

    seed: int
    counts: dict[str, int]


class StateRefused(Exception):
    """A state file cannot be used; it is unchanged."""


def in_one_line(problem: object) -> str:
    """What is wrong, cut and without line breaks."""
    return " ".join(str(problem).split())[:PROBLEM_LENGTH_MAX]


class NotStored(Exception):
    """The state could not be stored in its ``place``, so nothing has changed."""

    def __init__(self, place: str, reason: str, *, is_full: bool) -> None:
        super().__init__(f"nothing has changed, because {place} could not be written: {reason}")
        self.reason = reason
        self.is_full = is_full


class ServerRows(NamedTuple):
    """What a state file holds for the server as a whole."""

    ids: StoredIds | None = None
    deleted: tuple[str, ...] = ()


class AgendaEntry(NamedTuple):
    """A command, when it is due, and the number that orders ties."""

    at: datetime
    sequence: int
    command: Command


class Snapshot(NamedTuple):
    """The whole state of a project, except its ids and its key."""

    format: str
    now: datetime
    clock_mode: str
    clock_rate: float
    settings: dict[str, Any]
    scenario: dict[str, Any]
    rule_uses: tuple[tuple[int, int], ...]
    scenario_faults: tuple[Use, ...]
    faults: dict[str, Any]
    fault_uses: tuple[Use, ...]
    seed: int
    id_series: int
    id_counts: dict[str, int]
    epoch: int
    sequence: int
    agenda: tuple[AgendaEntry, ...]
    orders: tuple[Order, ...]
    credentials: tuple[Credential, ...]
    qr_requests: tuple[QrRequest, ...]
    deliveries: tuple[Delivery, ...]
    deliveries_dropped: int
    swapped: tuple[str, ...]
