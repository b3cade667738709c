"""The check on requests that the HTTP client may have sent again: the shop's code has made one call."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox.operations.review.creation_checks import is_creation_request
from payment_sandbox.operations.review.evidence import Finding, ReviewedHistory, format_request, order_in
from payment_sandbox.operations.review.lessons import CALL_VERBS, REPETITION_RISKS, SENT_AGAIN
from payment_sandbox.operations.review.money_checks import (
    FAULT_RULE,
    is_conflict,
    money_call,
    moved_cents,
)
from payment_sandbox.orders.amounts import euros
from payment_sandbox.projects.http_clients import client_of
from payment_sandbox.projects.journal import JournalEntry
from payment_sandbox.scenarios.variation_catalogue import DOUBLE_PAYMENT

MISTAKEN_FAILURE: Final = "your shop takes the refusal for a failure of a call that worked"


def find_client_resends(history: ReviewedHistory) -> Iterator[Finding]:
    """Find calls that were executed, then sent again by the HTTP client and executed or refused."""
    by_id = {entry.id: entry for entry in history.requests}
    for second in history.requests:
        first = by_id.get(second.resent_of or "")
        if first is not None and first.fault is not None and first.fault.is_after:
            yield from _report_resend(history, _first_sent(by_id, first), second)


def _first_sent(by_id: dict[str, JournalEntry], entry: JournalEntry) -> JournalEntry:
    """Return the call that the shop made, of which a client may have sent several copies."""
    while entry.resent_of in by_id:
        entry = by_id[entry.resent_of]
    return entry


def _report_resend(history: ReviewedHistory, first: JournalEntry, second: JournalEntry) -> Iterator[Finding]:
    """Report what the second request did: another order, another movement of money, or a refusal."""
    if is_creation_request(second):
        if second.order_id not in (None, first.order_id):
            created = "created the order again, and now there are two"
            yield _report(first, second, created, history.amount(second.order_id), DOUBLE_PAYMENT)
        return
    moved = [*money_call(first), *money_call(second)]
    if len(moved) == len((first, second)) and all(call.is_accepted() for call in moved):
        cents, past = moved_cents(history, moved[0]), CALL_VERBS[moved[0].verb][1]
        words = f"{past} {euros(cents)} again" if cents is not None else f"{past} again"
        yield _report(first, second, words, cents or 0, REPETITION_RISKS[moved[0].verb])
    elif is_conflict(second):
        yield _report(first, second, "was refused, although the call had worked", 0, MISTAKEN_FAILURE)


def _report(first: JournalEntry, second: JournalEntry, words: str, cents: int, risk: str) -> Finding:
    client = client_of(second)
    name, remedy = (client.name, client.remedy) if client is not None else ("an HTTP client", "")
    advice = f"If your shop uses {name}: {remedy}. " if remedy else ""
    return Finding(
        FAULT_RULE,
        f"The HTTP client, perhaps {name}, may have sent a request again by itself after its response was "
        f"lost; your shop's code was not told, and the second request {words}",
        f"{advice}If your own code sent it again: read the order first.",
        first.order_id or order_in(first),
        (format_request(first), format_request(second)),
        risk=risk,
        page=SENT_AGAIN.path,
        amount=cents,
        shown_by=(second.id,),
        preceded_by=(first.id,),
    )
