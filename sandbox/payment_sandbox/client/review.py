"""Finds mistakes of an integration in its requests and webhooks."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from payment_sandbox.client import answers
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.orders.webhooks import BY_SCENARIO

LOOKED: Final = (200, 304)
LOSING: Final = frozenset({"status", "reset", "hang", "truncate"})
POLLS_MAX: Final = 4
NO_ANSWER: Final = 999
POLL_APART: Final = timedelta(hours=1)
CREATION: Final = "/v1/orders"
GIVEN_UP: Final = ("cancelled", "expired", "error")


class Finding(NamedTuple):
    """One mistake: the rule behind it, what happened, what to do, and the requests that show it."""

    rule: str
    problem: str
    advice: str
    order_id: str | None
    requests: tuple[str, ...]

    def __str__(self) -> str:
        shown = "".join(f"\n    {request}" for request in self.requests)
        of = f" (order {self.order_id})" if self.order_id is not None else ""
        return f"{self.rule}: {self.problem}{of}\n  {self.advice}{shown}"


class History(NamedTuple):
    """The history of a project: requests, returns to the shop, webhooks, and order statuses."""

    requests: Sequence[answers.JournalEntry]
    returns: Sequence[answers.Return]
    webhooks: Sequence[answers.Webhook]
    statuses: dict[str, str]


def review(client: SandboxClient) -> list[Finding]:
    """Review a project's journal; a correct integration gets no findings."""
    found = client.happened()
    orders = {entry["order_id"] for entry in found["items"] if entry["order_id"]}
    statuses = {order_id: client.status(order_id) for order_id in orders}
    known = {order_id: status for order_id, status in statuses.items() if status is not None}
    history = History(found["items"], found["returns"], client.webhooks(), known)
    return [finding for check in CHECKS for finding in check(history)]


def _line(entry: answers.JournalEntry) -> str:
    return f"{entry['at']}  {entry['method']} {entry['path']} -> {entry['status']}"


def _is_creation(entry: answers.JournalEntry) -> bool:
    return (entry["method"], entry["path"].rstrip("/")) == ("POST", CREATION)


def _reads(history: History) -> dict[str, list[answers.JournalEntry]]:
    reads: dict[str, list[answers.JournalEntry]] = defaultdict(list)
    for entry in history.requests:
        if (
            entry["method"] == "GET"
            and entry["order_id"]
            and entry["status"] in LOOKED
            and entry["path"].rstrip("/").endswith(entry["order_id"])
        ):
            reads[entry["order_id"]].append(entry)
    return reads


def _is_own(attempt: answers.Attempt) -> bool:
    """Whether the merchant answered, and not a scenario on their behalf."""
    return not {attempt["warning"], attempt["error"]} & BY_SCENARIO


def _status(attempt: answers.Attempt) -> int:
    """The status of the merchant's response; 999 if there was none."""
    return attempt["response"]["status"] if attempt["response"] is not None else NO_ANSWER


def _is_taken(attempt: answers.Attempt) -> bool:
    """Whether the merchant received and acknowledged it."""
    return _is_own(attempt) and _status(attempt) < 300


def unread(history: History) -> Iterator[Finding]:
    """The shop acknowledged a webhook but never read the order."""
    reads = _reads(history)
    newest: dict[str, answers.Attempt] = {}
    for webhook in history.webhooks:
        told = list(filter(_is_taken, webhook["attempts"]))
        if told:
            newest[webhook["order_id"]] = told[0]
    for order_id, attempt in newest.items():
        is_read = any(entry["real_at"] >= attempt["real_at"] for entry in reads[order_id])
        if not is_read and not _is_cancelled_by_shop(history, order_id):
            yield Finding(
                "HOOK-08",
                "a webhook was answered, but the order was not read",
                "A webhook carries no status: GET the order before you fulfil it.",
                order_id,
                (f"{attempt['at']}  webhook {attempt['number']}",),
            )


def _is_cancelled_by_shop(history: History, order_id: str) -> bool:
    """Whether the shop cancelled the order itself and so knows its status already."""
    return history.statuses.get(order_id) == "cancelled" and any(
        entry["order_id"] == order_id and entry["method"] == "DELETE" and _told(entry) == "cancelled"
        for entry in history.requests
    )


def trusted_return(history: History) -> Iterator[Finding]:
    """The customer came back, but the shop did not check whether they had paid."""
    reads = _reads(history)
    told = {webhook["order_id"] for webhook in history.webhooks if any(map(_is_taken, webhook["attempts"]))}
    for visit in history.returns:
        order_id = visit["order_id"]
        if order_id not in told and not any(e["real_at"] >= visit["real_at"] for e in reads[order_id]):
            yield Finding(
                "FLOW-15",
                "the customer came back, but the order was not read",
                "return_url is visited whether or not the payment succeeded: GET the order there.",
                order_id,
                (f"{visit['at']}  back to the shop",),
            )


def unanswered(history: History) -> Iterator[Finding]:
    """Webhooks got no 2xx response."""
    for webhook in history.webhooks:
        failed = [
            attempt
            for attempt in webhook["attempts"]
            if _is_own(attempt) and not 200 <= _status(attempt) < 300
        ]
        if failed:
            outcome = failed[0]["error"] or f"answered {_status(failed[0])}"
            yield Finding(
                "HOOK-09",
                f"{len(failed)} webhook attempts got no 2xx: {outcome}",
                "Answer 2xx once you have recorded the order, and do slow work afterwards.",
                webhook["order_id"],
                tuple(f"{attempt['at']}  webhook {attempt['number']}" for attempt in failed),
            )


def created_twice(history: History) -> Iterator[Finding]:
    """One basket has two orders that can both be paid."""
    by_number: dict[str, list[answers.JournalEntry]] = defaultdict(list)
    for entry in history.requests:
        asked = entry["request"]
        number = asked.get("merchant_order_id") if isinstance(asked, dict) else None
        if _is_creation(entry) and number is not None:
            by_number[number].append(entry)
    for number, entries in by_number.items():
        alive = [entry for entry in entries if _is_alive(history, entry)]
        if len(alive) > 1:
            yield Finding(
                "ORD-07",
                f"merchant_order_id {number!r} was created {len(alive)} times",
                "Keep the id of the order that you created, and cancel it before you create another.",
                alive[-1]["order_id"],
                tuple(map(_line, alive)),
            )


def captured_late(history: History) -> Iterator[Finding]:
    """A capture was sent after the authorization had expired."""
    for entry in history.requests:
        if entry["rule"] == "CAP-04" and "/captures" in entry["path"]:
            yield Finding(
                "CAP-04",
                "a capture came after the authorization had expired",
                "Request an expiration_period that covers your shipping, and capture before it ends.",
                entry["order_id"],
                (_line(entry),),
            )


def retried_blindly(history: History) -> Iterator[Finding]:
    """The response to a creation was lost, and it was sent again although the order existed."""
    creations = [entry for entry in history.requests if _is_creation(entry)]
    for number, first in enumerate(creations):
        second = _sent_again(history, first, creations[number + 1 :])
        if _is_answer_lost(first) and _is_alive(history, first) and second is not None:
            yield Finding(
                "CTL-23",
                "a creation was sent again after its response was lost, and now there are two orders",
                "After a lost response, check first whether the order exists: its webhooks show it.",
                first["order_id"],
                (_line(first), _line(second)),
            )


def _is_answer_lost(entry: answers.JournalEntry) -> bool:
    return bool((entry["fault"] or {}).keys() & LOSING)


def _sent_again(
    history: History, first: answers.JournalEntry, later: Sequence[answers.JournalEntry]
) -> answers.JournalEntry | None:
    """The first later creation with the same body whose order was not abandoned."""
    same = (entry for entry in later if entry["request"] == first["request"])
    return next((entry for entry in same if _is_alive(history, entry)), None)


def _is_alive(history: History, creation: answers.JournalEntry) -> bool:
    """Whether it created an order that is not abandoned."""
    order_id = creation["order_id"]
    return order_id is not None and history.statuses.get(order_id) not in GIVEN_UP


def _told(entry: answers.JournalEntry) -> str | None:
    """The order's status in a response; None if the journal truncated the response."""
    response = entry["response"]
    return response.get("status") if isinstance(response, dict) else None


def _causes(history: History, order_id: str) -> list[str]:
    """The times of everything that justifies a read: a webhook, a return, or a merchant call."""
    told = (
        attempt["real_at"]
        for webhook in history.webhooks
        if webhook["order_id"] == order_id
        for attempt in webhook["attempts"]
    )
    came = (visit["real_at"] for visit in history.returns if visit["order_id"] == order_id)
    called = (
        entry["real_at"]
        for entry in history.requests
        if entry["order_id"] == order_id and entry["method"] != "GET"
    )
    return sorted([*told, *came, *called])


def _apart(first: answers.JournalEntry, second: answers.JournalEntry) -> bool:
    """Whether they are too far apart in sandbox time to count as polling."""
    return datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"]) >= POLL_APART


def _longest_run(entries: Sequence[answers.JournalEntry], causes: list[str]) -> list[answers.JournalEntry]:
    """Consecutive reads with the same result and no cause, up to one more than allowed."""
    run: list[answers.JournalEntry] = []
    for entry in entries:
        run = [*run, entry] if run and _is_polling(run, entry, causes) else [entry]
        if len(run) > POLLS_MAX:
            break
    return run


def _is_polling(run: list[answers.JournalEntry], entry: answers.JournalEntry, causes: list[str]) -> bool:
    """Whether a read repeats the run's result with no cause since."""
    has_cause = any(run[-1]["real_at"] < at <= entry["real_at"] for at in causes) or _apart(run[-1], entry)
    is_same = entry["status"] != 200 or _told(entry) == _told(run[0])
    return is_same and not has_cause


def polled(history: History) -> Iterator[Finding]:
    """The shop polled for a status instead of waiting for the webhook."""
    for order_id, entries in _reads(history).items():
        run = _longest_run(entries, _causes(history, order_id))
        if len(run) > POLLS_MAX:
            yield Finding(
                "HOOK-02",
                f"the order was read at least {len(run)} times without a change in between",
                "Wait for the webhook: every status change sends one.",
                order_id,
                tuple(map(_line, run)),
            )


CHECKS: Final[Sequence[Callable[[History], Iterable[Finding]]]] = (
    unread,
    trusted_return,
    unanswered,
    created_twice,
    captured_late,
    retried_blindly,
    polled,
)
