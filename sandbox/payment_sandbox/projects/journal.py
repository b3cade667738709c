"""The journal of an epoch: what the shop, the sandbox and the control API have done.

A record is added once, when it has happened, and never changes. Its id names its kind and its number; most
records have a time, an order, and the record that caused them. ``Edit.log`` adds what an edit has done,
``web.merchant.merchant_blueprint`` adds the requests, and ``operations`` add failures and manual actions.

Everything else is a view: a filter, and a sentence for each record. ``projects.events`` shows new records to
watchers, ``cli.activity`` prints them as lines, ``judge.history`` puts them in a timeline, which
``web.answers.timeline_report`` makes a text. ``judge`` looks for mistakes, and ``storage.journal_rows``
stores the records.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from itertools import chain, count
from threading import Lock, RLock
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from payment_sandbox.kernel.descriptions import INTERNAL, OneOf, to_plain_data
from payment_sandbox.kernel.masking import Masking, may_have_secret
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.events import Entry, Events
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.scenarios.model import Decision, ScenarioDecision, TransactionDecision
from payment_sandbox.scenarios.near_misses import explain

SHOP, TEST = "shop", "test"
CALLERS: Final = (SHOP, TEST)

VIA_PAGE: Final = "page"
VIA_CONTROL: Final = "control"
VIA_SCENARIO: Final = "scenario"
MERCHANT_ACTOR: Final = "merchant"  # manual actions in the dashboard
VIAS: Final = (VIA_PAGE, VIA_CONTROL, VIA_SCENARIO)

PATH_LENGTH_MAX: Final = 1000
JOURNAL_BODY_BYTES: Final = 16_384
HEADER_VALUE_MAX: Final = 500  # characters
TEXT_SHOWN_MAX: Final = 200  # characters, in an event
TEXTS_SHOWN_MAX: Final = 10
MASKING_MARGIN: Final = 600  # characters stored beyond a limit, so that a secret there is recognized
TEXT_END: Final = "\0"  # no secret includes it
SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization")
MASKED: Final = ("method", "path", "query", "request", "response", "ignored", "unknown", "warnings")
"""The parts of a request that come from outside, without the headers."""

ERROR_STATUS_MIN: Final = 400
VISIT: Final = "visit"
RETURN: Final = "return"
SCAN: Final = "scan"
SHOP_REQUEST: Final = "ask"  # a request to the shop from the customer's browser


def without_secret_headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Return headers as text, without those that contain keys, which must not be stored."""
    texts = [
        (name, value[: HEADER_VALUE_MAX + MASKING_MARGIN].decode("latin-1"))
        for raw, value in headers
        if (name := _shown_name(raw)) is not None
    ]
    return tuple(texts)


@lru_cache(maxsize=256)
def _shown_name(raw: bytes) -> str | None:
    """Return the name of a header as usually written; None for one that contains a key."""
    name = raw.decode("latin-1")
    if name.lower() in SECRET_HEADERS:
        return None
    return name.title() if name.islower() or name.isupper() else name


def add_suggestion(name: str, nearest: str | None) -> str:
    """Format an unknown name, with a suggestion."""
    return f"{name} (did you mean {nearest}?)" if nearest else name


def _shorten_texts(texts: Sequence[str]) -> list[str]:
    """Keep the first strings, each truncated, so that an event stays short."""
    shown = [text[:TEXT_SHOWN_MAX] for text in texts[:TEXTS_SHOWN_MAX]]
    return [*shown, f"and {len(texts) - len(shown)} more"] if len(texts) > len(shown) else shown


TextOrBytes = TypeVar("TextOrBytes", str, bytes)


def truncate_masked(masked: TextOrBytes, unmasked: TextOrBytes, length_max: int) -> TextOrBytes:
    """Truncate a masked text; if the unmasked text was truncated, drop its end, possibly a partial secret."""
    if len(unmasked) < length_max + MASKING_MARGIN:
        return masked[:length_max]
    return masked[: min(length_max, max(0, len(masked) - MASKING_MARGIN))]


def _truncate_headers(
    masked: Iterable[tuple[str, str]], unmasked: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    headers = [
        (name, truncate_masked(value, before, HEADER_VALUE_MAX) if len(before) > HEADER_VALUE_MAX else value)
        for (name, value), (_, before) in zip(masked, unmasked, strict=True)
    ]
    return tuple(headers)


def _mask_headers(masking: Masking, headers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((masking.mask_text(name), masking.mask_record(text, name)) for name, text in headers)


class LoggedRequest(NamedTuple):
    """One request and its response; bodies are unchanged, except that secrets are masked."""

    id: str
    at: datetime
    method: str
    path: str
    query: str
    status: int | None  # None: the connection was cut before the status
    request: Annotated[bytes, INTERNAL]
    response: Annotated[bytes, INTERNAL]
    ignored: tuple[str, ...] = ()
    rule: str | None = None
    order_id: str | None = None
    fault: Fault | None = None
    transaction_id: Annotated[str | None, INTERNAL] = None  # the attempt created by the request
    real_at: datetime | None = None  # time of arrival, before any effect
    # real time of the response, before any of its effects
    answered_at: Annotated[datetime | None, INTERNAL] = None
    request_headers: Annotated[tuple[tuple[str, str], ...], INTERNAL] = ()
    response_headers: Annotated[tuple[tuple[str, str], ...], INTERNAL] = ()
    # Ignored keys that are unknown to the API, each with a suggestion.
    unknown: Annotated[tuple[tuple[str, str | None], ...], INTERNAL] = ()
    warnings: Annotated[tuple[str, ...], INTERNAL] = ()
    caller: str = SHOP
    resent_of: str | None = None  # the lost request that an HTTP client may have sent again as this one

    @property
    def is_evidence(self) -> bool:
        """Whether the call shows what the shop does or knows, unlike a call by a test."""
        return self.caller == SHOP

    def mask(self, masking: Masking) -> "LoggedRequest":
        """Mask secrets, and truncate long values afterwards, because part of a secret is not recognized.

        All texts are examined as one first, because most have no secret.
        """
        texts = [self.method, self.path, self.query, *self.ignored, *self.warnings]
        texts += [*map(": ".join, (*self.request_headers, *self.response_headers)), *map(str, self.unknown)]
        bodies = [body.decode(errors="surrogateescape") for body in (self.request, self.response)]
        text = TEXT_END.join((*texts, *bodies))
        is_clean = not may_have_secret(text, masking.api_key)
        body_length = max(len(self.request), len(self.response))
        if is_clean and max(map(len, texts)) <= HEADER_VALUE_MAX and body_length <= JOURNAL_BODY_BYTES:
            return self  # nothing is truncated
        masked = self if is_clean else self._mask_parts(masking)
        return masked._replace(
            path=truncate_masked(masked.path, self.path, PATH_LENGTH_MAX),
            query=truncate_masked(masked.query, self.query, PATH_LENGTH_MAX),
            request=truncate_masked(masked.request, self.request, JOURNAL_BODY_BYTES),
            response=truncate_masked(masked.response, self.response, JOURNAL_BODY_BYTES),
            request_headers=_truncate_headers(masked.request_headers, self.request_headers),
            response_headers=_truncate_headers(masked.response_headers, self.response_headers),
        )

    def _mask_parts(self, masking: Masking) -> "LoggedRequest":
        masked = self._replace(**{name: masking.mask_record(getattr(self, name)) for name in MASKED})
        return masked._replace(
            request_headers=_mask_headers(masking, self.request_headers),
            response_headers=_mask_headers(masking, self.response_headers),
        )

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return {
            "id": self.id,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "rule": self.rule,
            "order_id": self.order_id,
            "at": timestamp(self.at),
            "error": self.error(),
            "unknown": _shorten_texts([add_suggestion(name, nearest) for name, nearest in self.unknown]),
            "warnings": _shorten_texts(self.warnings),
            "fault": self.fault and self.fault.document,
        }

    def error(self) -> str | None:
        """Return a refusal's type and message; None if the request succeeded or its body was truncated."""
        if self.status is None or self.status < ERROR_STATUS_MIN:
            return None
        try:
            error = json.loads(self.response)["error"]
            return f"{error['type']}: {error['value']}"
        except (ValueError, LookupError, TypeError, RecursionError):  # from a fault, or truncated
            return None


class ReceivedRequest:
    """A request as it came, which becomes an entry, masked once, when somebody first looks at it."""

    __slots__ = ("_entry", "_lock", "id", "order_id")

    def __init__(
        self, request_id: str, order_id: str | None, make_entry: Callable[[], LoggedRequest]
    ) -> None:
        """``make_entry`` masks the request; the ids are known before."""
        self.id = request_id
        self.order_id = order_id
        self._entry: LoggedRequest | Callable[[], LoggedRequest] = make_entry
        self._lock = Lock()

    @property
    def entry(self) -> LoggedRequest:
        """The masked entry, always the same object."""
        if not isinstance(self._entry, LoggedRequest):
            with self._lock:
                if not isinstance(self._entry, LoggedRequest):
                    self._entry = self._entry()
        return self._entry

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return self.entry.summary()


class PerformedAction(NamedTuple):
    """A manual action by a customer, bank, screening, processor or merchant."""

    id: str
    at: Annotated[datetime, "Sandbox time."]
    real_at: datetime
    actor: Annotated[str, OneOf(lambda: (*ACTIONS, MERCHANT_ACTOR))]
    action: str
    via: Annotated[str, OneOf(lambda: VIAS)]
    order_id: str | None  # None for a visit to a QR code's page
    transaction_id: str | None
    how: Annotated[Mapping[str, Any], "Further fields of the action."]

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return to_plain_data(self)


class ReachedStatus(NamedTuple):
    """A status reached by an order or one of its attempts."""

    id: str
    order_id: str
    payment_method: Annotated[str | None, "The method of an attempt; null for an order."]
    transaction_id: str | None
    status: str
    at: datetime
    real_at: datetime
    cause: Annotated[str | None, "The id of the request, action or agenda event that caused the change."]
    before: Annotated[str | None, "The status before, for an order that already had one."] = None

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return {
            "order_id": self.order_id,
            "before": self.before,
            "after": self.status,
            "at": timestamp(self.at),
            "id": self.id,
            "cause": self.cause,
        }


class AgendaEvent(NamedTuple):
    """An executed agenda entry, such as an expiry; actions and webhooks have other records."""

    id: str
    order_id: str
    kind: str
    label: str
    at: datetime
    real_at: datetime


class LoggedFailure(NamedTuple):
    """A due command that failed."""

    id: str
    order_id: str
    kind: str
    label: str
    error: str
    at: datetime
    real_at: datetime

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return {
            "at": timestamp(self.at),
            "kind": self.kind,
            "order_id": self.order_id,
            "label": self.label,
            "failed": self.error,
        }


class RecordedDecision(NamedTuple):
    """A scenario's decision for an attempt; its explanation is made when it is first read."""

    id: str
    transaction_id: str
    decision: Decision | Callable[[], Decision]

    def summary(self) -> dict[str, Any]:
        """Return the fields for an event."""
        return {"transaction_id": self.transaction_id, **self.explanation()}

    def explanation(self) -> Decision:
        """Return the deciding rule, or the nearest rule and its differences."""
        return self.decision() if callable(self.decision) else self.decision


ENTRIES_MAX: Final = 10_000
UNSTORED_MAX: Final = 50_000  # records kept in memory if the store does not save them

Record = LoggedRequest | PerformedAction | ReachedStatus | AgendaEvent | LoggedFailure | RecordedDecision
RECORDS: Final[Mapping[str, type[Record]]] = {
    "request": LoggedRequest,
    "action": PerformedAction,
    "status": ReachedStatus,
    "event": AgendaEvent,
    "failure": LoggedFailure,
    "decision": RecordedDecision,
}
"""The kinds of records, by the prefix of their ids."""
EVENT_KINDS: Final[Mapping[type[Record | ReceivedRequest], str]] = {
    ReceivedRequest: "request",
    PerformedAction: "action",
    LoggedFailure: "failed",
    RecordedDecision: "decision",
}
"""The kinds of the records' events; watchers see no other records, but the changes of an order's status."""


def shown(records: Iterable[Any]) -> list[Any]:
    """Return records as they are shown: requests as their masked entries."""
    return [record.entry if isinstance(record, ReceivedRequest) else record for record in records]


def number_of(record: Record | ReceivedRequest) -> int:
    """Return the number in a record's id."""
    return number_in(record.id)


def number_in(record_id: str) -> int:
    """Return the number in an id; 0 if there is none."""
    text = record_id.partition("-")[2].partition("/")[0]
    return int(text) if text.isdecimal() else 0


EntryFilter = Callable[[LoggedRequest], bool]
"""A filter for entries."""

AnyRecord = TypeVar("AnyRecord", bound=Record)


class EpochJournal:
    """The newest records of each kind and of each order, which readers get masked.

    ``revision`` increases after each change; ``dropped_count`` requests were dropped to make room.
    """

    def __init__(self, events: Events, *, is_stored: bool = False) -> None:
        """If the journal ``is_stored``, new records also wait for ``take_unstored``."""
        self.events = events
        self._numbers: Iterator[int] = count(1)
        self._by_kind: Mapping[type, deque[Any]] = {
            kind: deque(maxlen=ENTRIES_MAX) for kind in RECORDS.values()
        }
        self._logs: dict[str, list[Any]] = {}  # the records of each order
        self._shown: dict[str, tuple[Any, ...]] = {}  # copies of the logs that have been read since a change
        self._decisions: dict[str, RecordedDecision] = {}  # by transaction
        self._revision = 0
        self._dropped_count = 0
        self._changing = RLock()
        self._is_stored = is_stored
        self._unstored: deque[Record | ReceivedRequest] = deque(maxlen=UNSTORED_MAX)
        self._read_earlier: Callable[[], Iterable[Record]] | None = None  # called once
        self._reading = Lock()

    def next_id(self, kind: str) -> str:
        """Draw an id for a record, such as ``request-7``; numbers increase with the start times."""
        return f"{kind}-{next(self._numbers)}"

    def continue_after(self, number: int, read: Callable[[], Iterable[Record]]) -> None:
        """Start after a number; ``read`` loads the records up to that number, oldest first, on demand."""
        self._numbers = count(number + 1)
        self._read_earlier = read

    def _read(self) -> None:
        """Add the earlier records, which are older than all others."""
        if self._read_earlier is not None:
            with self._reading:
                if self._read_earlier is not None:
                    earlier = list(self._read_earlier())
                    with self._changing:
                        newer = sorted(chain.from_iterable(self._by_kind.values()), key=number_of)
                        for same_kind in self._by_kind.values():
                            same_kind.clear()
                        self._logs.clear()
                        self._shown.clear()
                        self._append([*earlier, *newer])
                    self._read_earlier = None

    def of(self, kind: type[AnyRecord], orders: Iterable[str | None] | None = None) -> list[AnyRecord]:
        """Return the records of a kind, all or those of some orders, oldest first."""
        self._read()
        if orders is None:
            records = list(self._by_kind[kind])
            return shown(records) if kind is LoggedRequest else records
        logs = [self._log_of(order_id or "") for order_id in set(orders)]
        own = [record for record in chain.from_iterable(logs) if type(record) is kind]
        return sorted(own, key=number_of) if len(logs) > 1 else own

    def _log_of(self, order_id: str) -> Sequence[Any]:
        """Return the records of an order, oldest first; an unchanged log is the same object."""
        if order_id not in self._shown:
            shown(tuple(self._logs.get(order_id, ())))  # masked before others have to wait
        with self._changing:
            if order_id in self._logs and order_id not in self._shown:
                self._shown[order_id] = tuple(shown(self._logs[order_id]))
            return self._shown.get(order_id, ())

    @property
    def logs(self) -> Mapping[str, Sequence[Any]]:
        """The records of each order; an unchanged log is the same object."""
        self.of(LoggedRequest)  # masked before others have to wait
        with self._changing:
            return {order_id: self._log_of(order_id) for order_id in self._logs}

    @property
    def revision(self) -> int:
        """A number that increases after each change."""
        self._read()
        return self._revision

    @property
    def dropped_count(self) -> int:
        """The number of requests dropped to make room."""
        self._read()
        return self._dropped_count

    def explain(self, decision: ScenarioDecision) -> Callable[[], Decision]:
        """Return a function that explains a decision, masked, once."""
        masking = self.events.masking
        return cache(lambda: masking.mask_record(explain(decision)))

    def explanation(self, transaction_id: str | None) -> Decision | None:
        """Explain the scenario's decision for an attempt; None if no decision is known."""
        self._read()
        decided = self._decisions.get(transaction_id or "")
        return None if decided is None else decided.explanation()

    def decisions(self, attempts: Iterable[Transaction]) -> Iterator[TransactionDecision]:
        """Yield the scenario's decisions for attempts."""
        for attempt in attempts:
            decision = self.explanation(attempt.id)
            if decision is not None:
                yield {"transaction_id": attempt.id, **decision}

    def add(
        self, records: Sequence[Record | ReceivedRequest], others: Sequence[tuple[str, Entry]] = ()
    ) -> None:
        """Add masked records, and show them and others to watchers; a full journal drops its oldest."""
        self.restore(records)
        events: list[tuple[str, Any]] = []
        for record in records:
            if type(record) in EVENT_KINDS:
                events.append((EVENT_KINDS[type(record)], record))
        if events or others:
            self.events.add([*events, *others])

    def restore(self, records: Sequence[Record | ReceivedRequest]) -> None:
        """Add the masked records of a snapshot, which watchers have seen."""
        with self._changing:
            self._append(records)
        if self._is_stored:
            self._unstored.extend(records)

    def _append(self, records: Iterable[Record | ReceivedRequest]) -> None:
        """Add records, oldest first; each drops the oldest of its kind if there are too many."""
        for record in records:
            kind = LoggedRequest if isinstance(record, ReceivedRequest) else type(record)
            same_kind = self._by_kind[kind]
            if len(same_kind) == same_kind.maxlen:
                self._drop(same_kind[0])
            if isinstance(record, RecordedDecision):
                self._decisions[record.transaction_id] = record
            elif record.order_id is not None:
                self._logs.setdefault(record.order_id, []).append(record)
                self._shown.pop(record.order_id, None)
            same_kind.append(record)
        self._revision += 1

    def _drop(self, record: Any) -> None:
        """Drop the oldest record of a kind from what belongs to its order."""
        if isinstance(record, RecordedDecision):
            self._decisions.pop(record.transaction_id, None)
            return
        self._dropped_count += isinstance(record, LoggedRequest | ReceivedRequest)
        self._shown.pop(record.order_id, None)
        log = self._logs.get(record.order_id, [])
        place = next((place for place, each in enumerate(log) if each is record), None)
        if place is not None:
            del log[place]
        if not log:
            self._logs.pop(record.order_id, None)

    def entries(
        self,
        entry_filter: EntryFilter | None = None,
        orders: Iterable[str | None] | None = None,
        *,
        newest_first: bool = False,
    ) -> Iterator[LoggedRequest]:
        """Return the selected entries (default: all)."""
        entries = self.of(LoggedRequest, orders)
        return filter(entry_filter, reversed(entries) if newest_first else entries)

    def actions(self, orders: frozenset[str | None] | None = None) -> list[PerformedAction]:
        """Return all actions, or those on some orders, oldest first."""
        return self.of(PerformedAction, orders)

    def take_unstored(self) -> Iterator[Record]:
        """Yield the records since the last call, for the store."""
        while self._unstored:
            try:
                record: Record = shown([self._unstored.popleft()])[0]
            except IndexError:  # taken by another thread
                return
            if isinstance(record, RecordedDecision):
                yield record._replace(decision=record.explanation())
            else:
                yield record

    def close(self) -> None:
        """Store no more records, because the store belongs to the next epoch."""
        self._is_stored = False
        self._unstored.clear()

    def find(self, entry_id: str) -> LoggedRequest | None:
        """Find a request by its id."""
        return next(self.entries(lambda entry: entry.id == entry_id, newest_first=True), None)
