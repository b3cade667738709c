"""Mistakes with webhooks: not answered, not followed by a read, or not waited for."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.review.evidence import (
    Finding,
    Reviewed,
    began,
    counted,
    line_of,
    line_of_attempt,
    reads_of,
    status_told,
)
from payment_sandbox.orders.webhooks import BY_SCENARIO, NOT_DELIVERED_TO, STAYS_HERE, WebhookAttempt
from payment_sandbox.projects.journal import JournalEntry

POLLS_MAX: Final = 4
CLIENT_ERROR: Final = 400
SERVER_ERROR: Final = 500
OUTCOME_LENGTH_MAX: Final = 200
TOO_LATE: Final = "no answer within"
ANSWER_FIRST: Final = "Answer 2xx once you have recorded the order, and do slow work afterwards."
LISTEN: Final = "Make the shop listen at this address, or correct the address."
UNANSWERED: Final = {  # what to do instead, by words of the error
    TOO_LATE: ANSWER_FIRST,
    STAYS_HERE: "Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test.",
    NOT_DELIVERED_TO: "Correct the address, or start the server with serve --deliver-to HOST for its host.",
}
NO_ANSWER: Final = 999
POLL_APART: Final = timedelta(hours=1)


def _is_own(attempt: WebhookAttempt) -> bool:
    """Whether the merchant answered, and not a scenario on their behalf."""
    return not {attempt.reply.warning, attempt.reply.error} & BY_SCENARIO


def _status(attempt: WebhookAttempt) -> int:
    """The status of the merchant's response; 999 if there was none."""
    return attempt.reply.status if attempt.reply.status is not None else NO_ANSWER


def _is_taken(attempt: WebhookAttempt) -> bool:
    """Whether the merchant received and acknowledged it."""
    return _is_own(attempt) and _status(attempt) < 300


def unread(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop acknowledged a webhook but never read the order, nor tried."""
    reads = reads_of(reviewed, and_tries=True)
    newest: dict[str, WebhookAttempt] = {}
    for webhook in reviewed.webhooks:
        taken = list(filter(_is_taken, webhook.tries))
        if taken:
            newest[webhook.order_id] = taken[0]
    for order_id, attempt in newest.items():
        is_read = any(began(entry) >= attempt.real_at for entry in reads[order_id])
        if not is_read and not _is_cancelled_by_shop(reviewed, order_id):
            yield Finding(
                "HOOK-08",
                "a webhook was answered, but the order was not read",
                "A webhook carries no status: GET the order before you fulfil it.",
                order_id,
                (line_of_attempt(attempt),),
            )


def _is_cancelled_by_shop(reviewed: Reviewed, order_id: str) -> bool:
    """Whether the shop cancelled the order itself and so knows its status already."""
    return reviewed.statuses.get(order_id) == "cancelled" and any(
        entry.order_id == order_id and entry.method == "DELETE" and status_told(entry) == "cancelled"
        for entry in reviewed.requests
    )


def trusted_return(reviewed: Reviewed) -> Iterator[Finding]:
    """The customer came back, but the shop did not check whether they had paid."""
    reads = reads_of(reviewed, and_tries=True)
    notified = {webhook.order_id for webhook in reviewed.webhooks if any(map(_is_taken, webhook.tries))}
    for visit in reviewed.returns:
        order_id = visit.order_id or ""
        if order_id not in notified and not any(began(e) >= visit.real_at for e in reads[order_id]):
            yield Finding(
                "FLOW-15",
                "the customer came back, but the order was not read",
                "return_url is visited whether or not the payment succeeded: GET the order there.",
                order_id,
                (f"{timestamp(visit.at)}  back to the shop",),
            )


def unanswered(reviewed: Reviewed) -> Iterator[Finding]:
    """Webhooks got no 2xx response."""
    for webhook in reviewed.webhooks:
        failed = [
            attempt for attempt in webhook.tries if _is_own(attempt) and not 200 <= _status(attempt) < 300
        ]
        if failed:
            outcome = _in_short(failed[0].reply.error) or f"answered {_status(failed[0])}"
            attempts = counted(len(failed), "a webhook attempt", "webhook attempts")
            yield Finding(
                "HOOK-09",
                f"{attempts} got no 2xx: {outcome}",
                _advice(failed[0]),
                webhook.order_id,
                tuple(map(line_of_attempt, failed)),
            )


def _in_short(error: str | None) -> str | None:
    """The first line of an error: libraries put whole chains of exceptions into one."""
    if not error:
        return None
    first = error.splitlines()[0]
    return first if len(first) <= OUTCOME_LENGTH_MAX else f"{first[:OUTCOME_LENGTH_MAX]}..."


def _advice(attempt: WebhookAttempt) -> str:
    """What to do about a webhook that got no 2xx; it depends on what came instead."""
    status = _status(attempt)
    if status == NO_ANSWER:
        error = attempt.reply.error or ""
        return next((advice for words, advice in UNANSWERED.items() if words in error), LISTEN)
    if status < CLIENT_ERROR:
        return "A redirect counts as delivered, and your handler never ran: is this your return page?"
    if status < SERVER_ERROR:
        return "Your shop refused it: check the path, the method, and protection such as CSRF or a login."
    return "Your handler failed: look at its log. The webhook comes again, ten times at most."


def _causes(reviewed: Reviewed) -> dict[str, list[datetime]]:
    """The times of everything that justifies a read, by order: a webhook, a return, or a merchant call."""
    causes: dict[str, list[datetime]] = defaultdict(list)
    for webhook in reviewed.webhooks:
        causes[webhook.order_id] += [attempt.real_at for attempt in webhook.attempts]
    for visit in reviewed.returns:
        causes[visit.order_id or ""].append(visit.real_at)
    for entry in reviewed.requests:
        if entry.order_id is not None and entry.method != "GET":
            causes[entry.order_id].append(began(entry))
    return causes


def _longest_run(entries: Sequence[JournalEntry], causes: list[datetime]) -> list[JournalEntry]:
    """Consecutive reads with the same result and no cause, up to one more than allowed."""
    run: list[JournalEntry] = []
    for entry in entries:
        run = [*run, entry] if run and _is_polling(run, entry, causes) else [entry]
        if len(run) > POLLS_MAX + _copies(run[0], causes):
            break
    return run


def _copies(first: JournalEntry, causes: list[datetime]) -> int:
    """How many copies of the webhook before a read justify further ones: they have the same time."""
    before = [at for at in causes if at <= began(first)]
    return before.count(before[-1]) - 1 if before else 0


def _is_polling(run: list[JournalEntry], entry: JournalEntry, causes: list[datetime]) -> bool:
    """Whether a read repeats the run's result with no cause since, soon after in sandbox time."""
    is_apart = entry.at - run[-1].at >= POLL_APART
    has_cause = is_apart or any(began(run[-1]) < at <= began(entry) for at in causes)
    is_same = entry.status != 200 or status_told(entry) == status_told(run[0])
    return is_same and not has_cause


def polled(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop polled for a status instead of waiting for the webhook."""
    causes = _causes(reviewed)
    for order_id, entries in reads_of(reviewed).items():
        if len(entries) <= POLLS_MAX:
            continue
        run = _longest_run(entries, sorted(causes[order_id]))
        if len(run) > POLLS_MAX + _copies(run[0], sorted(causes[order_id])):
            yield Finding(
                "HOOK-02",
                f"the order was read at least {len(run)} times without a change in between",
                "Wait for the webhook: every status change sends one.",
                order_id,
                tuple(map(line_of, run)),
            )
