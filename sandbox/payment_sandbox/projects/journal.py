"""The requests of the merchant API, as they came and as they were answered."""

import json
import re
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.scenarios.model import Decision

ENTRIES_MAX: Final = 10_000
BODY_KEPT_BYTES: Final = 16_384

_CVC: Final = re.compile(rb'("cvc"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]?|[^\s,}\]]+)')
_CARD_NUMBER: Final = re.compile(
    rb"(?<![\w-])[2-6](?:\d{12,18}|\d{3}(?:[ -]\d{4}){2}[ -]\d{1,7}|\d{3}[ -]\d{6}[ -]\d{5})(?![\w-])"
)


class JournalEntry(NamedTuple):
    """One request and its answer; bodies are kept as they were sent, secrets masked."""

    at: datetime
    method: str
    path: str
    query: str
    status: int | None  # None: the connection was cut before there was one
    request: bytes
    response: bytes
    ignored: tuple[str, ...] = ()
    rule: str | None = None
    order_id: str | None = None
    fault: dict[str, Any] | None = None
    transaction_id: str | None = None  # of the attempt that the request made
    real_at: datetime | None = None  # when it came, before all that it caused


class ReturnVisit(NamedTuple):
    """A customer who was sent back to the shop."""

    order_id: str
    at: datetime
    real_at: datetime


class StatusReached(NamedTuple):
    """A status that an order has reached, or with ``payment_method`` one of its attempts."""

    order_id: str
    payment_method: str | None
    status: str
    at: datetime
    real_at: datetime


class Failure(NamedTuple):
    """Something due that could not be done."""

    order_id: str
    kind: str
    label: str
    error: str
    at: datetime
    real_at: datetime


class Journal:
    """Keeps the newest entries and counts what it dropped."""

    def __init__(self) -> None:
        self.entries: deque[JournalEntry] = deque(maxlen=ENTRIES_MAX)
        self.dropped = 0
        self.decisions: dict[str, Decision] = {}  # by transaction
        self.returns: deque[ReturnVisit] = deque(maxlen=ENTRIES_MAX)
        self.statuses: deque[StatusReached] = deque(maxlen=ENTRIES_MAX)
        self.failures: deque[Failure] = deque(maxlen=ENTRIES_MAX)

    def note(self, decisions: Mapping[str, Decision]) -> None:
        """Keep what the scenario decided for attempts; as many as entries."""
        self.decisions.update(decisions)
        while len(self.decisions) > ENTRIES_MAX:
            del self.decisions[next(iter(self.decisions))]

    def add(self, entry: JournalEntry) -> None:
        """Keep an entry; a full journal lets its oldest go."""
        if len(self.entries) == ENTRIES_MAX:
            self.dropped += 1
        self.entries.append(entry)


def masked(body: bytes) -> bytes:
    """A body without CVC and card numbers, cut at its length limit (CTL-29)."""
    kept = body[:BODY_KEPT_BYTES]
    if b"cvc" in kept:
        kept = _CVC.sub(rb'\1"***"', kept)
    return _CARD_NUMBER.sub(_mask_card_number, kept)


def unescaped(body: bytes, data: Any) -> bytes:
    """A body whose escapes could hide a key from ``masked``, written anew from what it said."""
    return json.dumps(data).encode() if b"\\u" in body else body


def _mask_card_number(match: re.Match[bytes]) -> bytes:
    digits = [byte - 48 for byte in match.group() if 48 <= byte < 58]
    doubled = [
        digit if place % 2 == 0 else sum(divmod(digit * 2, 10)) for place, digit in enumerate(digits[::-1])
    ]
    return b"0" if sum(doubled) % 10 == 0 else match.group()
