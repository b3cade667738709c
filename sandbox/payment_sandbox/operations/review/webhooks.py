"""Mistakes with webhooks: no answer, no read of the order, or polling."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.review.creations import is_creation
from payment_sandbox.operations.review.evidence import (
    Finding,
    Reviewed,
    began,
    ended,
    in_words,
    is_from_shop,
    line_of,
    line_of_attempt,
    times,
)
from payment_sandbox.orders.webhooks import (
    NOT_DELIVERED_TO,
    STAYS_LOCAL,
    Delivery,
    DeliveryState,
    WebhookAttempt,
)
from payment_sandbox.projects.journal import JournalEntry
from payment_sandbox.scenarios.effects import WebhooksFirst

POLLS_MAX: Final = 4
CLIENT_ERROR: Final = 400
SERVER_ERROR: Final = 500
OUTCOME_LENGTH_MAX: Final = 200
TOO_LATE: Final = "no answer within"
ANSWER_EARLY: Final = (
    "The webhook came before the response that named the order: store your own number first, and find the "
    "purchase by merchant_order_id, or answer 503 until you know the order."
)
ANSWER_FIRST: Final = "Answer 2xx once you have recorded the order, and do slow work afterwards."
NEVER: Final = datetime.min.replace(tzinfo=UTC)
A_MOMENT: Final = timedelta(seconds=1)
LISTEN: Final = "Make the shop listen at this address, or correct the address."
UNANSWERED: Final = {  # advice by words of the error
    TOO_LATE: ANSWER_FIRST,
    STAYS_LOCAL: "Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test.",
    NOT_DELIVERED_TO: "Correct the address, or start the server with serve --deliver-to HOST for its host.",
}
NO_ANSWER: Final = 999
POLL_APART: Final = timedelta(hours=1)


def _status(attempt: WebhookAttempt) -> int:
    """Return the status of the shop's response; 999 without a response."""
    return attempt.reply.status if attempt.reply.status is not None else NO_ANSWER


def _is_taken(attempt: WebhookAttempt) -> bool:
    """Whether the shop acknowledged the attempt."""
    return is_from_shop(attempt) and _status(attempt) < 300


def unread(reviewed: Reviewed) -> Iterator[Finding]:
    """Find acknowledged webhooks after which the shop did not try to read the order."""
    taken: dict[str, list[tuple[Delivery, WebhookAttempt]]] = defaultdict(list)
    for webhook in reviewed.webhooks:
        taken[webhook.order_id] += [(webhook, attempt) for attempt in filter(_is_taken, webhook.tries)]
    for order_id, attempts in taken.items():
        newest = max(map(began, reviewed.attempted_reads[order_id]), default=NEVER)
        unseen = [pair for pair in attempts if newest < pair[1].real_at]
        if unseen and not _is_cancelled_by_shop(reviewed, order_id):
            yield Finding(
                "HOOK-08",
                "Your shop answered a webhook, but did not read the order",
                "A webhook carries no status: GET the order before you fulfil it.",
                order_id,
                tuple(line_of_attempt(attempt) for _, attempt in unseen),
                amount=reviewed.amount(order_id),
                shown_by=tuple(attempt_id(*pair) for pair in unseen),
            )


def attempt_id(webhook: Delivery, attempt: WebhookAttempt) -> str:
    """Return the id of an attempt in the timeline."""
    return f"{webhook.id}/{webhook.attempts.index(attempt) + 1}"


def _is_cancelled_by_shop(reviewed: Reviewed, order_id: str) -> bool:
    """Whether the shop cancelled the order itself, and so knows the status."""
    return reviewed.status(order_id) == "cancelled" and any(
        entry.order_id == order_id and entry.method == "DELETE" and reviewed.statuses[entry.id] == "cancelled"
        for entry in reviewed.requests
    )


def trusted_return(reviewed: Reviewed) -> Iterator[Finding]:
    """Find returns of customers after which the shop did not check the payment."""
    notified = {webhook.order_id for webhook in reviewed.webhooks if any(map(_is_taken, webhook.tries))}
    for visit in reviewed.returns:
        order_id = visit.order_id or ""
        if order_id not in notified and not any(
            began(e) >= visit.real_at for e in reviewed.attempted_reads[order_id]
        ):
            yield Finding(
                "FLOW-15",
                "The customer came back, but your shop did not read the order",
                "Customers come back to return_url whether they paid or not: GET the order there.",
                order_id,
                (f"{timestamp(visit.at)}  back to the shop",),
                amount=reviewed.amount(order_id),
                shown_by=(visit.id,),
            )


Failed = list[tuple[Delivery, WebhookAttempt]]
"""Attempts with the same failure, each with its webhook."""


def unanswered(reviewed: Reviewed) -> Iterator[Finding]:
    """Find webhooks without a 2xx response; webhooks of an order that failed alike share a finding."""
    early = {
        each.order_id: ended(each) for each in reviewed.requests if _sends_webhooks_first(reviewed, each)
    }
    alike: dict[tuple[str, int, str], Failed] = defaultdict(list)
    for webhook in reviewed.webhooks:
        for attempt in filter(_has_failed, webhook.tries):
            kind = webhook.order_id, _status(attempt), _healed(webhook)
            alike[kind].append((webhook, attempt))
    for (order_id, _, healed), failed in alike.items():
        first = failed[0][1]
        was_early = first.real_at < early.get(order_id, NEVER) + A_MOMENT
        yield Finding(
            "HOOK-09",
            _unanswered(failed),
            ANSWER_EARLY if was_early else _advice(first),
            order_id,
            tuple(line_of_attempt(attempt) for _, attempt in failed),
            amount=reviewed.amount(order_id),
            healed=healed,
            shown_by=tuple(attempt_id(*pair) for pair in failed),
        )


def _has_failed(attempt: WebhookAttempt) -> bool:
    """Whether the shop did not answer with 2xx."""
    return is_from_shop(attempt) and not 200 <= _status(attempt) < 300


def _unanswered(failed: Failed) -> str:
    """Describe the failure of webhooks, and its repetitions."""
    first, webhooks = failed[0][1], len({webhook.id for webhook, _ in failed})
    status, error = _status(first), _in_short(first.reply.error)
    which = {1: "the webhook", 2: "both webhooks"}.get(webhooks, f"{in_words(webhooks)} webhooks")
    often = ""
    if len(failed) > webhooks:
        often = f" {times(len(failed))}" if webhooks == 1 else f", in {in_words(len(failed))} attempts"
    if status == NO_ANSWER:
        return f"Your shop did not answer {which}{often}: {error}"
    how = {3: "with a redirect", 5: "with an error"}.get(status // 100, "with a refusal")
    broken = f", and the response broke off: {error}" if error else ""
    return f"Your shop answered {which} {how} ({status}){often}{broken}"


def _sends_webhooks_first(reviewed: Reviewed, entry: JournalEntry) -> bool:
    """Whether the webhooks of a creation arrived before its response."""
    is_early = entry.fault is not None and isinstance(entry.fault.effect, WebhooksFirst)
    return is_creation(entry) and (is_early or reviewed.webhooks_first)


def _healed(webhook: Delivery) -> str:
    """Describe the later attempt that succeeded; empty without one."""
    last = webhook.tries[-1]
    if webhook.state is not DeliveryState.DELIVERED or not _is_taken(last):
        return ""
    return f"attempt {last.number} at {last.at:%H:%M:%S} was answered {_status(last)}"


def _in_short(error: str | None) -> str | None:
    """Shorten an error to its first line; libraries join whole chains of exceptions."""
    if not error:
        return None
    first = error.splitlines()[0]
    return first if len(first) <= OUTCOME_LENGTH_MAX else f"{first[:OUTCOME_LENGTH_MAX]}..."


def _advice(attempt: WebhookAttempt) -> str:
    """Return the advice about a webhook without a 2xx response."""
    status = _status(attempt)
    if status == NO_ANSWER:
        error = attempt.reply.error or ""
        return next((advice for words, advice in UNANSWERED.items() if words in error), LISTEN)
    if status < CLIENT_ERROR:
        return "A redirect counts as delivered, and your handler never ran: is this your return page?"
    if status < SERVER_ERROR:
        return "Your shop refused it: check the path, the method, and protection such as CSRF or a login."
    return "Your handler failed: check its log. The service retries every two minutes, up to ten attempts."


def _causes(reviewed: Reviewed) -> dict[str, list[datetime]]:
    """Return the times of all reasons for a read, by order: webhooks, returns, and calls of the shop."""
    causes: dict[str, list[datetime]] = defaultdict(list)
    for webhook in reviewed.webhooks:
        begun: dict[int, datetime] = {}  # copies count as sent at once
        causes[webhook.order_id] += [
            begun.setdefault(attempt.number, attempt.real_at) for attempt in webhook.attempts
        ]
    for visit in reviewed.returns:
        causes[visit.order_id or ""].append(visit.real_at)
    for entry in reviewed.requests:
        if entry.order_id is not None and entry.method != "GET":
            causes[entry.order_id].append(began(entry))
    return causes


def _longest_run(
    reviewed: Reviewed, entries: Sequence[JournalEntry], causes: list[datetime]
) -> list[JournalEntry]:
    """Return consecutive reads with the same result and without a reason, at most one above the limit."""
    run: list[JournalEntry] = []
    for entry in entries:
        run = [*run, entry] if run and _is_polling(reviewed, run, entry, causes) else [entry]
        if len(run) > POLLS_MAX + _copies(run[0], causes):
            break
    return run


def _copies(first: JournalEntry, causes: list[datetime]) -> int:
    """Count the copies of the webhook before a read, each of which justifies another read."""
    before = [at for at in causes if at <= began(first)]
    return before.count(before[-1]) - 1 if before else 0


def _is_polling(
    reviewed: Reviewed, run: list[JournalEntry], entry: JournalEntry, causes: list[datetime]
) -> bool:
    """Whether a read repeats the run's result soon after, without a new reason."""
    is_apart = entry.at - run[-1].at >= POLL_APART
    has_cause = is_apart or any(began(run[-1]) < at <= began(entry) for at in causes)
    is_same = entry.status != 200 or reviewed.statuses[entry.id] == reviewed.statuses[run[0].id]
    return is_same and not has_cause


def polled(reviewed: Reviewed) -> Iterator[Finding]:
    """Find polling for a status in place of waiting for the webhook."""
    causes = _causes(reviewed)
    for order_id, entries in reviewed.reads.items():
        if len(entries) <= POLLS_MAX:
            continue
        run = _longest_run(reviewed, entries, sorted(causes[order_id]))
        if len(run) > POLLS_MAX + _copies(run[0], sorted(causes[order_id])):
            yield Finding(
                "HOOK-02",
                f"Your shop read the order at least {times(len(run))} without a change in between",
                "Wait for the webhook: every status change sends one.",
                order_id,
                tuple(map(line_of, run)),
                shown_by=tuple(entry.id for entry in run),
            )
