"""What an integration does wrong, as its requests and webhooks tell."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from payment_sandbox.client import answers
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.orders.deliveries import BY_SCENARIO

LOOKED: Final = (200, 304)
LOSING: Final = frozenset({"status", "reset", "hang", "truncate"})
POLLS_MAX: Final = 4
NO_ANSWER: Final = 999
POLL_APART: Final = timedelta(hours=1)
CREATION: Final = "/v1/orders"
GIVEN_UP: Final = ("cancelled", "expired", "error")


class Finding(NamedTuple):
    """One thing to mend: the rule behind it, what happened, the requests that show it, and what to do."""

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
    """What a project saw: requests, visits back to the shop, webhooks, and how the orders stand."""

    requests: Sequence[answers.JournalEntry]
    returns: Sequence[answers.Return]
    webhooks: Sequence[answers.Webhook]
    statuses: dict[str, str]


def review(client: SandboxClient) -> list[Finding]:
    """Look through a project's journal; a clean integration gives no finding."""
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
    """Whether it was up to the merchant, and no scenario answered for him."""
    return not {attempt["warning"], attempt["error"]} & BY_SCENARIO


def _status(attempt: answers.Attempt) -> int:
    """What the merchant answered; 999 for nothing."""
    return attempt["response"]["status"] if attempt["response"] is not None else NO_ANSWER


def _is_taken(attempt: answers.Attempt) -> bool:
    """Whether the merchant got it and said so."""
    return _is_own(attempt) and _status(attempt) < 300


def unread(history: History) -> Iterator[Finding]:
    """Told by a webhook, and never looked."""
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
                "a webhook was answered, and the order not read",
                "A webhook carries no status: GET the order before you fulfil it.",
                order_id,
                (f"{attempt['at']}  webhook {attempt['number']}",),
            )


def _is_cancelled_by_shop(history: History, order_id: str) -> bool:
    """Whether the answer to its own call has told it what the webhook is about."""
    return history.statuses.get(order_id) == "cancelled" and any(
        entry["order_id"] == order_id and entry["method"] == "DELETE" and _told(entry) == "cancelled"
        for entry in history.requests
    )


def trusted_return(history: History) -> Iterator[Finding]:
    """The customer came back, and nobody asked whether he has paid."""
    reads = _reads(history)
    told = {webhook["order_id"] for webhook in history.webhooks if any(map(_is_taken, webhook["attempts"]))}
    for visit in history.returns:
        order_id = visit["order_id"]
        if order_id not in told and not any(e["real_at"] >= visit["real_at"] for e in reads[order_id]):
            yield Finding(
                "FLOW-15",
                "the customer came back, and the order was not read",
                "return_url is visited whether or not the payment succeeded: GET the order there.",
                order_id,
                (f"{visit['at']}  back to the shop",),
            )


def unanswered(history: History) -> Iterator[Finding]:
    """Webhooks that got no 2xx."""
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
                "Answer 2xx once you have noted the order, and do slow work afterwards.",
                webhook["order_id"],
                tuple(f"{attempt['at']}  webhook {attempt['number']}" for attempt in failed),
            )


def created_twice(history: History) -> Iterator[Finding]:
    """One basket, two orders that can both be paid."""
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
    """Shipped after the authorization had run out."""
    for entry in history.requests:
        if entry["rule"] == "CAP-04" and "/captures" in entry["path"]:
            yield Finding(
                "CAP-04",
                "a capture came after the authorization had expired",
                "Ask for an expiration_period that covers your shipping, and capture before it ends.",
                entry["order_id"],
                (_line(entry),),
            )


def retried_blindly(history: History) -> Iterator[Finding]:
    """The answer to a creation was lost, and the same was sent again though the order was there."""
    creations = [entry for entry in history.requests if _is_creation(entry)]
    for number, first in enumerate(creations):
        second = _sent_again(history, first, creations[number + 1 :])
        if _is_answer_lost(first) and _is_alive(history, first) and second is not None:
            yield Finding(
                "CTL-23",
                "a creation whose answer was lost was sent again, and there are two orders now",
                "After a lost answer look first whether the order is there: its webhook tells.",
                first["order_id"],
                (_line(first), _line(second)),
            )


def _is_answer_lost(entry: answers.JournalEntry) -> bool:
    return bool((entry["fault"] or {}).keys() & LOSING)


def _sent_again(
    history: History, first: answers.JournalEntry, later: Sequence[answers.JournalEntry]
) -> answers.JournalEntry | None:
    """The first later creation with the same body whose order was not given up."""
    same = (entry for entry in later if entry["request"] == first["request"])
    return next((entry for entry in same if _is_alive(history, entry)), None)


def _is_alive(history: History, creation: answers.JournalEntry) -> bool:
    """Whether it made an order that was not given up since."""
    order_id = creation["order_id"]
    return order_id is not None and history.statuses.get(order_id) not in GIVEN_UP


def _told(entry: answers.JournalEntry) -> str | None:
    """The order's status in an answer; None for one that the journal had to cut."""
    response = entry["response"]
    return response.get("status") if isinstance(response, dict) else None


def _causes(history: History, order_id: str) -> list[str]:
    """When there was something to look at an order for: a webhook, a visit, a call of the merchant's own."""
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
    """Whether so much of the project's time lies between that nobody would call it polling."""
    return datetime.fromisoformat(second["at"]) - datetime.fromisoformat(first["at"]) >= POLL_APART


def _longest_run(entries: Sequence[answers.JournalEntry], causes: list[str]) -> list[answers.JournalEntry]:
    """Reads that saw the same and had no cause, one after the other, up to one too many."""
    run: list[answers.JournalEntry] = []
    for entry in entries:
        run = [*run, entry] if run and _is_polling(run, entry, causes) else [entry]
        if len(run) > POLLS_MAX:
            break
    return run


def _is_polling(run: list[answers.JournalEntry], entry: answers.JournalEntry, causes: list[str]) -> bool:
    """Whether a read saw what the run saw, and nothing had happened since that was worth a look."""
    has_cause = any(run[-1]["real_at"] < at <= entry["real_at"] for at in causes) or _apart(run[-1], entry)
    is_same = entry["status"] != 200 or _told(entry) == _told(run[0])
    return is_same and not has_cause


def polled(history: History) -> Iterator[Finding]:
    """Asked again and again what a webhook would have told."""
    for order_id, entries in _reads(history).items():
        run = _longest_run(entries, _causes(history, order_id))
        if len(run) > POLLS_MAX:
            yield Finding(
                "HOOK-02",
                f"the order was read {len(run)} times and more without a change between",
                "Wait for the webhook; it comes with every change of status.",
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
