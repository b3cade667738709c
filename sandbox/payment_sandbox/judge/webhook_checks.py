"""Checks on webhooks: no answer, no read of the order, and polling."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

from payment_sandbox.judge.call_checks import is_creation
from payment_sandbox.judge.evidence import (
    ACCEPTED_STATUSES,
    Finding,
    ReviewedHistory,
    describe_late,
    end_of,
    format_attempt,
    format_request,
    format_times,
    is_answer_lost,
    is_change,
    is_from_shop,
    is_late,
    number_in_words,
    start_of,
)
from payment_sandbox.judge.lessons import FAILING_REFUNDS, READ_ORDER
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.webhooks import (
    LEADS_TO,
    LISTEN,
    NO_ANSWER,
    NOT_DELIVERED_TO,
    NOT_SENT_IN_TESTS,
    THEN_FAILED,
    Delivery,
    DeliveryState,
    WebhookAttempt,
)
from payment_sandbox.projects.journal import LoggedRequest
from payment_sandbox.scenarios.effects import WebhooksFirst

POLLS_MAX: Final = 4
CLIENT_ERROR: Final = 400
INVALID_BODY: Final = 422
SERVER_ERROR: Final = 500
OUTCOME_LENGTH_MAX: Final = 200
CLOSED_CONNECTION_ERROR: Final = "closed the connection without a response"
EARLY_WEBHOOK_ADVICE: Final = (
    "The webhook arrived before the response with the order's id: store your own number first, and find "
    "the purchase by merchant_order_id, or answer 503 until you know the order."
)
FAST_ANSWER_ADVICE: Final = "Answer 2xx once you have recorded the order, and do slow work afterwards."
EARLIEST_TIME: Final = datetime.min.replace(tzinfo=UTC)
EARLY_MARGIN: Final = timedelta(seconds=1)
LISTEN_ADVICE: Final = f"{LISTEN} this address, or correct the address."
CRASH_ADVICE: Final = "Your handler crashed, or closed the connection without a response: check its log."
RETRY_SENTENCE: Final = "The service retries every two minutes, up to ten attempts."
LOG_ADVICE: Final = f"Your handler failed: check its log. {RETRY_SENTENCE}"
EXCEPTION_ADVICE: Final = f"Your handler failed with an exception, which the timeline shows. {RETRY_SENTENCE}"
LATE_FAILURE_ADVICE: Final = (
    "After a 2xx the service never retries: finish and commit your work before you answer. "
    "The timeline shows the exception."
)
ADVICE_BY_ERROR: Final = {  # advice, by words in the error
    NO_ANSWER: FAST_ANSWER_ADVICE,
    CLOSED_CONNECTION_ERROR: CRASH_ADVICE,
    NOT_SENT_IN_TESTS: (
        "Call payment_sandbox.deliver_to(app), which delivers webhooks to the shop under test."
    ),
    NOT_DELIVERED_TO: "Correct the address, or start the server with serve --deliver-to HOST for its host.",
}
NO_ANSWER_STATUS: Final = 999
POLL_INTERVAL_MIN: Final = timedelta(minutes=10)  # the advice of the service


def _status(attempt: WebhookAttempt) -> int:
    """Return the status of the shop's response; 999 if there was none."""
    return attempt.reply.status if attempt.reply.status is not None else NO_ANSWER_STATUS


def _is_acknowledged(attempt: WebhookAttempt) -> bool:
    return is_from_shop(attempt) and _status(attempt) < 300


def find_unread_webhooks(history: ReviewedHistory) -> Iterator[Finding]:
    """Find acknowledged webhooks without a read of the order soon afterwards."""
    unread: dict[str, FailedAttempts] = defaultdict(list)
    delays: dict[str, list[timedelta | None]] = defaultdict(list)
    for webhook in history.webhooks:
        for attempt in filter(_is_acknowledged, webhook.delivery_attempts):
            delay = _read_after(history, webhook, attempt)
            if is_late(delay):
                unread[webhook.order_id].append((webhook, attempt))
                delays[webhook.order_id].append(delay)
    for order_id, attempts in unread.items():
        if _can_know(history, order_id):
            yield _report_unread_webhooks(history, order_id, attempts, describe_late(delays[order_id]))


def _read_after(history: ReviewedHistory, webhook: Delivery, attempt: WebhookAttempt) -> timedelta | None:
    """Return the sandbox time until the shop knew the order's status; None if it never did.

    The answer to its own capture, void or cancellation tells a shop as much as a read, and so does the answer
    to its create call, if it shows the status that the webhook announces.
    """
    order_id = webhook.order_id
    reads = [read.at for read in history.attempted_reads[order_id] if start_of(read) >= attempt.real_at]
    if reads and not is_late(delay := min(reads) - attempt.at):
        return delay
    for entry in history.requests_of[order_id]:
        if entry.at >= webhook.created and not is_answer_lost(entry):
            is_created = is_creation(entry) and history.statuses[entry.id] == webhook.status
            if is_created or is_change(entry):
                reads.append(entry.at)
    return min(reads) - attempt.at if reads else None


def _report_unread_webhooks(
    history: ReviewedHistory, order_id: str, unread: "FailedAttempts", late: str
) -> Finding:
    order = history.orders.get(order_id)
    is_refund = order is not None and order.is_refund
    lesson = FAILING_REFUNDS if is_refund else READ_ORDER
    return Finding(
        "HOOK-08",
        f"Your shop answered a webhook{' for a refund' if is_refund else ''}, "
        f"but did not read the {'refund' if is_refund else 'order'}{late}",
        "A refund can fail: GET it when its webhook arrives, and record it as done once it is completed."
        if is_refund
        else "A webhook carries no status: GET the order before you fulfil it.",
        order_id,
        tuple(format_attempt(attempt) for _, attempt in unread),
        risk=lesson.risk,
        page=lesson.path,
        amount=history.amount(order_id),
        shown_by=tuple(attempt_id(*pair) for pair in unread),
    )


def _can_know(history: ReviewedHistory, order_id: str) -> bool:
    """Whether the shop can know an order: no fault withheld the only responses with its id."""
    name = order_id.encode()
    entries = [each for each in history.requests if each.order_id == order_id or name in each.response]
    return not entries or not all(map(is_answer_lost, entries))


def attempt_id(webhook: Delivery, attempt: WebhookAttempt) -> str:
    """Return the id of an attempt in the timeline."""
    return f"{webhook.id}/{webhook.attempts.index(attempt) + 1}"


def find_trusted_returns(history: ReviewedHistory) -> Iterator[Finding]:
    """Find customer returns without a subsequent read of the order."""
    if not history.return_visits:
        return
    notified = {
        webhook.order_id
        for webhook in history.webhooks
        if any(map(_is_acknowledged, webhook.delivery_attempts))
    }
    for visit in history.return_visits:
        order_id = visit.order_id or ""
        reads = [each.at for each in history.attempted_reads[order_id] if start_of(each) >= visit.real_at]
        delay = min(reads) - visit.at if reads else None
        if order_id not in notified and is_late(delay):
            yield Finding(
                "FLOW-15",
                f"The customer came back, but your shop did not read the order{describe_late([delay])}",
                "Customers come back to return_url whether they paid or not: GET the order there.",
                order_id,
                (f"{timestamp(visit.at)}  back to the shop",),
                amount=history.amount(order_id),
                shown_by=(visit.id,),
            )


FailedAttempts = list[tuple[Delivery, WebhookAttempt]]
"""Attempts with the same failure, and their webhooks."""


def find_unanswered_webhooks(history: ReviewedHistory) -> Iterator[Finding]:
    """Find webhooks without a 2xx response, with one finding per order and kind of failure."""
    by_failure: dict[tuple[str, int, str], FailedAttempts] = defaultdict(list)
    for webhook in history.webhooks:
        for attempt in filter(_has_failed, webhook.delivery_attempts):
            kind = webhook.order_id, _status(attempt), _describe_recovery(webhook)
            by_failure[kind].append((webhook, attempt))
    calls = history.requests if by_failure else ()
    early = {each.order_id: end_of(each) for each in calls if _sends_webhooks_first(history, each)}
    for (order_id, _, healed), failed in by_failure.items():
        first = failed[0][1]
        was_early = first.real_at < early.get(order_id, EARLIEST_TIME) + EARLY_MARGIN
        yield Finding(
            "HOOK-09",
            _describe_failure(failed),
            EARLY_WEBHOOK_ADVICE if was_early else _advice_on_failure(failed[0][0].url, first),
            order_id,
            tuple(format_attempt(attempt) for _, attempt in failed),
            amount=history.amount(order_id),
            healed=healed,
            shown_by=tuple(attempt_id(*pair) for pair in failed),
        )


def find_failures_after_answers(history: ReviewedHistory) -> Iterator[Finding]:
    """Find handlers that failed after a 2xx response, so that their webhooks are not retried."""
    by_failure: dict[tuple[str, str], FailedAttempts] = defaultdict(list)
    for webhook in history.webhooks:
        for attempt in webhook.attempts:
            if _is_failure_after_answer(attempt):
                by_failure[webhook.order_id, attempt.reply.warning or ""].append((webhook, attempt))
    for (order_id, failure), failed in by_failure.items():
        later = failed[-1][0].attempts[-1]
        is_healed = _is_acknowledged(later) and not _is_failure_after_answer(later)
        yield Finding(
            "HOOK-09",
            f"Your shop {_shorten_error(failure)}",
            LATE_FAILURE_ADVICE,
            order_id,
            tuple(format_attempt(attempt) for _, attempt in failed),
            amount=history.amount(order_id),
            healed=f"attempt {later.number} at {later.at:%H:%M:%S} did not fail" if is_healed else "",
            shown_by=tuple(attempt_id(*pair) for pair in failed),
        )


def _is_failure_after_answer(attempt: WebhookAttempt) -> bool:
    """Whether the shop answered with 2xx, and failed afterwards."""
    return THEN_FAILED in (attempt.reply.warning or "") and _status(attempt) in ACCEPTED_STATUSES


def _has_failed(attempt: WebhookAttempt) -> bool:
    """Whether the shop did not answer with 2xx."""
    return is_from_shop(attempt) and not 200 <= _status(attempt) < 300


def _describe_failure(failed: FailedAttempts) -> str:
    first, webhooks = failed[0][1], len({webhook.id for webhook, _ in failed})
    status, error = _status(first), _shorten_error(first.reply.error)
    number = number_in_words(webhooks)
    repetitions = ""
    if len(failed) > webhooks:
        repetitions = (
            f" {format_times(len(failed))}"
            if webhooks == 1
            else f", in {number_in_words(len(failed))} attempts"
        )
    if status == NO_ANSWER_STATUS:
        verb = {1: "did not answer the webhook", 2: "answered neither of two webhooks"}.get(
            webhooks, f"answered none of {number} webhooks"
        )
        return f"Your shop {verb}{repetitions}: {error}"
    webhooks_text = {1: "the webhook", 2: "both webhooks"}.get(webhooks, f"{number} webhooks")
    reaction = {3: "with a redirect", 5: "with an error"}.get(status // 100, "with a refusal")
    break_off = f", and the response broke off: {error}" if error else ""
    return f"Your shop answered {webhooks_text} {reaction} ({status}){repetitions}{break_off}"


def _sends_webhooks_first(history: ReviewedHistory, entry: LoggedRequest) -> bool:
    is_early = entry.fault is not None and isinstance(entry.fault.effect, WebhooksFirst)
    return is_creation(entry) and (is_early or history.webhooks_first)


def _describe_recovery(webhook: Delivery) -> str:
    """Describe the later successful attempt; empty if all attempts failed."""
    last = webhook.delivery_attempts[-1]
    if webhook.state is not DeliveryState.DELIVERED or not _is_acknowledged(last):
        return ""
    return f"attempt {last.number} at {last.at:%H:%M:%S} was answered with {_status(last)}"


def _shorten_error(error: str | None) -> str | None:
    """Shorten an error to its first line; some libraries include chains of exceptions."""
    if not error:
        return None
    first = error.splitlines()[0]
    return first if len(first) <= OUTCOME_LENGTH_MAX else f"{first[:OUTCOME_LENGTH_MAX]}..."


SLASH_REDIRECTS: Final = (301, 307, 308)  # Django; Starlette, FastAPI and Pyramid; Flask and Quart
APPEND_SLASH: Final = "APPEND_SLASH"  # Django with DEBUG; in HTML, it comes after 4 KiB
DJANGO_ERROR: Final = re.compile(rf"(?:<title>|^)\s*RuntimeError\s+at /|{APPEND_SLASH}")
FORGERY: Final = re.compile(
    r"csrf|xsrf|InvalidAuthenticityToken|change you wanted was rejected|Page Expired"
    r"|<title>403: Forbidden</title>",  # Tornado
    re.IGNORECASE,
)
FORGERY_STATUSES: Final = (419, INVALID_BODY)  # Laravel, Rails
FORGERY_ADVICE: Final = (
    "The protection against forged forms (CSRF) of your framework refused it, and your handler never ran: "
    "exempt the route of the webhook."
)
OTHER_ERROR: Final = "If your handler raises RuntimeError itself, check its log."


def _advice_on_failure(url: str, attempt: WebhookAttempt) -> str:
    cause = _advice_by_framework(url, attempt)
    if cause is not None:
        return cause
    status = _status(attempt)
    if status == NO_ANSWER_STATUS:
        error = attempt.reply.error or ""
        other = EXCEPTION_ADVICE if attempt.reply.traceback else LISTEN_ADVICE
        return next((advice for words, advice in ADVICE_BY_ERROR.items() if words in error), other)
    if status < CLIENT_ERROR:
        return "A redirect counts as delivered, and your handler never ran: is this your return page?"
    if status < SERVER_ERROR:
        return (
            "Your shop refused it: check the path and its final slash, the method, and protection such as "
            "CSRF or a login."
        )
    return EXCEPTION_ADVICE if attempt.reply.traceback else LOG_ADVICE


def _advice_by_framework(url: str, attempt: WebhookAttempt) -> str | None:
    """Return the advice about an answer that a framework gives before the handler runs."""
    status, body = _status(attempt), attempt.reply.body
    if status < CLIENT_ERROR:
        return _advice_on_redirect(url, status, (attempt.reply.warning or "").partition(LEADS_TO)[2])
    if status < SERVER_ERROR:
        return _advice_on_refusal(status, body)
    is_slash = not urlsplit(url).path.endswith("/") and DJANGO_ERROR.search(body)
    return _slash_advice(url, "" if APPEND_SLASH in body else OTHER_ERROR) if is_slash else None


def _advice_on_refusal(status: int, body: str) -> str | None:
    is_forgery = FORGERY.search(body) is not None
    if status == INVALID_BODY and body.startswith("{") and not is_forgery:
        return "Your framework refused the body, which has event, order_id and project_id as text."
    return FORGERY_ADVICE if is_forgery or status in FORGERY_STATUSES else None


def _advice_on_redirect(url: str, status: int, location: str) -> str | None:
    """Return the advice about a redirect, whose target may be unknown."""
    path, target = urlsplit(url).path, urlsplit(location).path
    if location and path != target and path.rstrip("/") == target.rstrip("/"):
        return _slash_advice(url)
    if status not in SLASH_REDIRECTS:
        return None
    if location:
        return f"Your handler never ran: write {location} as webhook_url, if that is its address."
    return _slash_advice(url, "If this is not the cause, compare scheme, host and path.")


def _slash_advice(url: str, reservation: str = "") -> str:
    preposition = "without" if urlsplit(url).path.endswith("/") else "with"
    return (
        "Your handler never ran, because its route differs in the final slash: write webhook_url "
        f"{preposition} the final slash. {reservation}"
    ).rstrip()


def _read_reasons(history: ReviewedHistory) -> dict[str, list[datetime]]:
    """Return the times of all reasons to read an order: webhooks, returns, and the shop's own calls."""
    reasons: dict[str, list[datetime]] = defaultdict(list)
    for webhook in history.webhooks:
        first_sent: dict[int, datetime] = {}  # copies count as sent at the same time
        reasons[webhook.order_id] += [
            first_sent.setdefault(attempt.number, attempt.real_at) for attempt in webhook.attempts
        ]
    for visit in history.return_visits:
        reasons[visit.order_id or ""].append(visit.real_at)
    for entry in history.requests:
        if entry.order_id is not None and entry.method != "GET":
            reasons[entry.order_id].append(start_of(entry))
    return reasons


def _polls(
    history: ReviewedHistory, entries: Sequence[LoggedRequest], reasons: list[datetime]
) -> list[LoggedRequest]:
    """Return unprompted reads with the same result, one above the limit; empty if there are fewer."""
    run: list[LoggedRequest] = []
    for entry in entries:
        run = [*run, entry] if run and _is_polling(history, run, entry, reasons) else [entry]
        before = [at for at in reasons if at <= start_of(run[0])]
        copies = before.count(before[-1]) - 1 if before else 0  # each justifies another read
        if len(run) > POLLS_MAX + copies:
            return run
    return []


def _is_polling(
    history: ReviewedHistory, run: list[LoggedRequest], entry: LoggedRequest, reasons: list[datetime]
) -> bool:
    """Whether a read soon repeats the run's result without a new reason."""
    is_apart = entry.at - run[-1].at >= POLL_INTERVAL_MIN
    has_reason = is_apart or any(start_of(run[-1]) < at <= start_of(entry) for at in reasons)
    is_same = entry.status != 200 or history.statuses[entry.id] == history.statuses[run[0].id]
    return is_same and not has_reason


def find_polling(history: ReviewedHistory) -> Iterator[Finding]:
    """Find repeated reads by a shop that should wait for the webhook."""
    polled = {order_id: entries for order_id, entries in history.reads.items() if len(entries) > POLLS_MAX}
    reasons = _read_reasons(history) if polled else {}
    for order_id, entries in polled.items():
        run = _polls(history, entries, sorted(reasons[order_id]))
        if run:
            yield Finding(
                "HOOK-02",
                f"Your shop read the order at least {format_times(len(run))} without a change in between",
                "Wait for the webhook: every status change sends one.",
                order_id,
                tuple(map(format_request, run)),
                shown_by=tuple(entry.id for entry in run),
            )
