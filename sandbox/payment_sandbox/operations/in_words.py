"""An order's history for people: words for rule numbers, equal tries together, and what the shop believes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.operations.history import ERROR_FROM, SHOP, Happening, history
from payment_sandbox.operations.reasons import with_reasons
from payment_sandbox.operations.review.evidence import Finding, as_object, whole_number
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, euros
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import JournalEntry, number_of
from payment_sandbox.scenarios.sentences import fault_in_words

WORDS_MAX: Final = 60  # of a refusal
NOT_CHANGED: Final = 304
ORDER: Final = "order"
ORDERS: Final = "orders"
VERBS: Final = {
    ("POST", ORDERS): "creates the order",
    ("GET", ORDER): "reads the order",
    ("PUT", ORDER): "changes the order",
    ("DELETE", ORDER): "cancels the order",
    ("POST", "captures"): "captures",
    ("POST", "voids"): "voids",
    ("POST", "refunds"): "refunds",
}
CODES: Final = "bankqr"
CENTS: Final = re.compile(r"(-?\d+) cents\b")
UNREAD: Final = "HOOK-08"
MISSING: Final = "missing"  # a step that should be there, and is not


class Belief(NamedTuple):
    """What the shop was last told of an order's status, and which status it has.

    The first one is what it was told when it created the order.
    """

    at: datetime
    real_at: datetime
    shop: str
    service: str

    @property
    def is_true(self) -> bool:
        """Whether the shop knows the status."""
        return self.shop == self.service


def told(epoch: Epoch, order_id: str, findings: Iterable[Finding]) -> list[Happening]:
    """An order's history with calls in words, and with what the judge found wrong in it.

    Raises:
        Unknown: there is no such order.
    """
    open_findings = [finding for finding in findings if finding.is_open]
    reasoned = with_reasons(epoch, _in_words(epoch, history(epoch, order_id)))
    return list(_judged(reasoned, open_findings))


def _in_words(epoch: Epoch, happenings: Sequence[Happening]) -> list[Happening]:
    """Happenings with the shop's calls in words: what was asked, what was read, or why not."""
    calls = {happening.id for happening in happenings if happening.kind == "request"}
    entries = [entry for entry in epoch.journal.unmasked() if entry.id in calls]
    words = {entry.id: asked(entry) for entry in entries}
    words |= {f"{entry.id}/response": _words(entry) for entry in entries}
    return [
        happening._replace(label=epoch.journal.masked(words[happening.id]) or happening.label)
        if happening.id in words
        else happening
        for happening in happenings
    ]


def asked(entry: JournalEntry) -> str:
    """What a call asks for; empty if it has no word, and is shown as it came."""
    _, collection, *place = [*entry.path.strip("/").split("/"), ""]
    if collection == CODES and entry.method == "POST":
        return _with_amount("makes a QR code", entry)
    if collection != ORDERS:
        return ""
    # What is named after the id of the order, as in /v1/orders/<id>/transactions/<id>/captures/
    things = [part for part in place[1::2] if part and part != "transactions"]
    verb = VERBS.get((entry.method, things[0] if things else ORDER if place[0] else ORDERS), "")
    return _with_amount(verb, entry) if verb else ""


def _with_amount(verb: str, entry: JournalEntry) -> str:
    amount = whole_number(as_object(entry.request).get("amount"))
    if amount is None or abs(amount) > AMOUNT_CENTS_MAX:
        return verb
    return f"{verb} · {euros(amount)}"


def in_euros(text: str) -> str:
    """A text with its amounts in euros: the service counts in cents, people do not."""
    return CENTS.sub(lambda found: euros(int(found[1])), text)


def _judged(happenings: Iterable[Happening], findings: Sequence[Finding]) -> Iterator[Happening]:
    """The happenings, with those marked that show a mistake, and a note where the shop did not read."""
    unread = {each for finding in findings if finding.rule == UNREAD for each in finding.shown_by}
    wrong = {each for finding in findings for each in finding.shown_by} - unread
    for happening in happenings:
        yield happening._replace(failed=True) if happening.id in wrong else happening
        if happening.kind == "webhook-response" and happening.cause in unread:
            yield happening._replace(
                id=f"{happening.id}/missing",
                sender=SHOP,
                receiver=SHOP,
                kind=MISSING,
                label="your shop did not read the order",
                failed=True,
                detail=None,
                duration_ms=None,
            )


def _calls(epoch: Epoch, order_id: str) -> list[JournalEntry]:
    return [entry for entry in epoch.journal.unmasked() if entry.order_id == order_id]


def _words(entry: JournalEntry) -> str:
    status = str(entry.status) if entry.status is not None else "no response"
    if entry.fault is not None and entry.fault.sends_nothing:
        return f"{status} · lost (fault)" if entry.status is not None else f"{status} (fault)"
    if entry.fault is not None:
        return f"{status} · by a fault of the sandbox: {fault_in_words(entry.fault.document)}"
    if entry.status is not None and entry.status >= ERROR_FROM:
        why = why_refused(entry)
        return f"{status} · {why}" if why else status
    told = status_in(entry)
    return f"{status} · {told}" if told else status


def refusal(entry: JournalEntry) -> str:
    """The whole sentence of a refusal, in euros; empty if there is none."""
    return in_euros((entry.error() or "").partition(": ")[2])


def why_refused(entry: JournalEntry) -> str:
    """Why a call was refused, in short: without the particulars in brackets, and with short ids."""
    why = UUID.sub(r"\1…", refusal(entry)).partition(" (")[0] or entry.rule or ""
    return why if len(why) <= WORDS_MAX else f"{why[:WORDS_MAX]}…"


def status_in(entry: JournalEntry) -> str | None:
    """The status of an order, or of its newest attempt, in a response."""
    status = as_object(entry.response).get("status")
    return status if isinstance(status, str) else None


class _Change(NamedTuple):
    """A status that somebody has learned, or reached."""

    real_at: datetime
    number: int  # of its record, as those of one edit have the same time
    at: datetime
    is_read: bool
    status: str


def beliefs(epoch: Epoch, order_id: str) -> list[Belief]:
    """How the order's status and the shop's belief changed, in the order in which it happened."""
    rows: list[Belief] = []
    reached, order = list(_reached(epoch, order_id)), epoch.store.order(order_id)
    shop: str | None = None
    service = str(order.status) if order is not None and not reached else None  # all is forgotten
    for change in sorted([*_reads(epoch, order_id), *reached]):
        shop, service = (change.status, service) if change.is_read else (shop, change.status)
        if shop is not None and service is not None and (not rows or rows[-1][2:] != (shop, service)):
            rows.append(Belief(change.at, change.real_at, shop, service))
    return rows


def _reached(epoch: Epoch, order_id: str) -> Iterator[_Change]:
    for reached in list(epoch.journal.statuses):
        if reached.order_id == order_id and reached.payment_method is None:
            yield _Change(reached.real_at, number_of(reached), reached.at, False, reached.status)


def _reads(epoch: Epoch, order_id: str) -> Iterator[_Change]:
    for entry in _calls(epoch, order_id):
        is_changed = entry.fault is not None and entry.fault.changes_response
        status = _read_status(entry) if not is_changed else None
        if status is not None:
            real_at = entry.answered_at or entry.real_at or entry.at
            yield _Change(real_at, number_of(entry), entry.at, True, status)


def _read_status(entry: JournalEntry) -> str | None:
    """The order's status in the response to a call about the order itself; None if it has none."""
    is_order = entry.path.rstrip("/").endswith(("/orders", entry.order_id or "/"))
    is_answered = entry.status is not None and entry.status < NOT_CHANGED
    return status_in(entry) if is_order and is_answered else None
