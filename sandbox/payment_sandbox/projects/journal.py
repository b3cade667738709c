"""The requests of the merchant API and their responses."""

import json
import re
from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.scenarios.model import Decision

ENTRIES_MAX: Final = 10_000
BODY_KEPT_BYTES: Final = 16_384

_CVC: Final = Pattern(rb'("cvc"\s*:\s*)(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]?|[^\s,}\]]+)')
_CARD_NUMBER: Final = Pattern(
    rb"(?<![\w-])[2-6](?:\d{12,18}|\d{3}(?:[ -]\d{4}){2}[ -]\d{1,7}|\d{3}[ -]\d{6}[ -]\d{5})(?![\w-])"
)


class JournalEntry(NamedTuple):
    """One request and its response; bodies are unchanged, except that secrets are masked."""

    at: datetime
    method: str
    path: str
    query: str
    status: int | None  # None: the connection was cut before the status
    request: bytes
    response: bytes
    ignored: tuple[str, ...] = ()
    rule: str | None = None
    order_id: str | None = None
    fault: dict[str, Any] | None = None
    transaction_id: str | None = None  # of the attempt that the request created
    real_at: datetime | None = None  # when it came in, before anything it caused


class ReturnVisit(NamedTuple):
    """A redirect of a customer back to the shop."""

    order_id: str
    at: datetime
    real_at: datetime


class StatusReached(NamedTuple):
    """A status that an order has reached or, with ``payment_method``, one of its attempts."""

    order_id: str
    payment_method: str | None
    status: str
    at: datetime
    real_at: datetime


class Failure(NamedTuple):
    """A due command that failed."""

    order_id: str
    kind: str
    label: str
    error: str
    at: datetime
    real_at: datetime


class Journal:
    """Keeps the newest entries and counts the dropped ones."""

    def __init__(self) -> None:
        self.entries: deque[JournalEntry] = deque(maxlen=ENTRIES_MAX)
        self.dropped = 0
        self.decisions: OrderedDict[str, Decision] = OrderedDict()  # by transaction
        self.returns: deque[ReturnVisit] = deque(maxlen=ENTRIES_MAX)
        self.statuses: deque[StatusReached] = deque(maxlen=ENTRIES_MAX)
        self.failures: deque[Failure] = deque(maxlen=ENTRIES_MAX)

    def note(self, decisions: Mapping[str, Decision]) -> None:
        """Store the scenario's decisions on attempts, up to the same limit as entries."""
        self.decisions.update(decisions)
        while len(self.decisions) > ENTRIES_MAX:
            self.decisions.popitem(last=False)

    def add(self, entry: JournalEntry) -> None:
        """Add an entry; a full journal drops its oldest."""
        if len(self.entries) == ENTRIES_MAX:
            self.dropped += 1
        self.entries.append(entry)


def masked(body: bytes) -> bytes:
    """The body without CVCs and card numbers, truncated to the length limit (CTL-29)."""
    cut = body[:BODY_KEPT_BYTES]
    if b"cvc" in cut:
        cut = _CVC.sub(rb'\1"***"', cut)
    return _CARD_NUMBER.sub(_mask_card_number, cut)


def unescaped(body: bytes, data: Any) -> bytes:
    """The body; serialized again if escapes could hide a key from ``masked``."""
    return json.dumps(data).encode() if b"\\u" in body else body


def _mask_card_number(match: re.Match[bytes]) -> bytes:
    digits = [byte - 48 for byte in match.group() if 48 <= byte < 58]
    doubled = [
        digit if place % 2 == 0 else sum(divmod(digit * 2, 10)) for place, digit in enumerate(digits[::-1])
    ]
    return b"0" if sum(doubled) % 10 == 0 else match.group()
