"""The evidence for a review, and its findings."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

from payment_sandbox.judge.lessons import CALL_VERBS, where_to_read
from payment_sandbox.kernel.descriptions import OneOf
from payment_sandbox.kernel.times import longest_unit, timestamp
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.webhooks import Delivery, WebhookAttempt
from payment_sandbox.projects.journal import RETURN, LoggedRequest, PerformedAction, ReachedStatus
from payment_sandbox.projects.order_logs import OrderLog
from payment_sandbox.scenarios.effects import Truncate

CUT_SHORT: Final = (
    "The body was cut short, which is no error in Java's HttpURLConnection, Ruby's Net::HTTP, Perl's LWP or "
    "PHP's file_get_contents: compare its length with Content-Length."
)
NOT_CHANGED: Final = 304
READ_STATUSES: Final = (200, NOT_CHANGED)
ACCEPTED_STATUSES: Final = range(200, 300)
"""The statuses with which a shop acknowledges a webhook."""
MADE_STATUSES: Final = (200, 201)
"""The statuses of responses to calls that the service executed."""
FAULT_RULE: Final = "CTL-23"
CHARGES_VERB: Final = "charges"
VAULT_TOKEN: Final = b'"vault_token"'
MONEY_PATH: Final = re.compile(rf"/({'|'.join(CALL_VERBS)})(?:/|$)")
CAPTURE_OR_VOID: Final = re.compile(r"/(?:captures|voids)/")
READ_WITHIN: Final = timedelta(minutes=10)
"""The sandbox time within which a read follows its reason, such as a webhook."""


MISTAKE: Final = "mistake"
HINT: Final = "hint"
KINDS: Final = (MISTAKE, HINT)
ORDER_PATH: Final = "orders"
EVIDENCE_SHOWN: Final = 4
"""The lines of evidence in a finding's text; others between them are counted."""
NUMBER_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Finding(NamedTuple):
    """A mistake in an integration.

    A hint is about the test rather than the integration.
    """

    rule: Annotated[str, "The id of the rule."]
    problem: Annotated[str, "The mistake, in a sentence."]
    advice: Annotated[str, "The advice."]
    order_id: str | None
    requests: tuple[Annotated[str, "A request or webhook with the mistake."], ...]
    kind: Annotated[str, OneOf(lambda: KINDS), "A mistake of the integration, or a hint about its test."] = (
        MISTAKE
    )
    risk: Annotated[str, "The cost of the mistake in money or goods; empty for hints."] = ""
    page: Annotated[str, "The page of the documentation; for a mistake, with wrong and right code."] = ""
    amount: Annotated[int, "Cents at risk in this history; 0 if none or unknown."] = 0
    healed: Annotated[str, "The later correction, such as a retry; empty without one."] = ""
    shown_by: tuple[Annotated[str, "The id of a timeline record with the mistake."], ...] = ()
    preceded_by: tuple[
        Annotated[str, "The id of a right record before them, such as a first refund."], ...
    ] = ()

    @property
    def consequence(self) -> str:
        """The risk without its amount."""
        return self.risk.removeprefix(f"{euros(self.amount)}: ")

    @classmethod
    def from_data(cls, item: Mapping[str, Any]) -> "Finding":
        """Create a finding from JSON data."""
        grouped = {name: tuple(item[name]) for name in ("requests", "shown_by", "preceded_by")}
        return cls(**{**item, **grouped})

    @property
    def is_open(self) -> bool:
        """Whether the finding is a mistake that was not corrected later."""
        return self.kind == MISTAKE and not self.healed

    def __str__(self) -> str:
        lesson = f"\n  Risk: {self.risk}. See {where_to_read(self.page)}" if self.risk else ""
        healed = f"\n  Corrected: {self.healed}" if self.healed else ""
        lines, omitted = self.requests, len(self.requests) - EVIDENCE_SHOWN
        if omitted > 1:
            lines = (*lines[: EVIDENCE_SHOWN - 1], f"and {omitted} more, until", lines[-1])
        shown = "".join(f"\n    {line}" for line in lines)
        of = f" (order {self.order_id})" if self.order_id is not None else ""
        return f"{self.rule}: {self.problem}{of}\n  {self.advice}{lesson}{healed}{shown}"


class FindingGroup(NamedTuple):
    """Findings of a review with the same cause and consequence, and their orders."""

    name: str  # the rule, with a number if it has several groups
    first: Finding
    findings: Sequence[Finding]
    orders: list[str]  # distinct ids, as in the list of orders: a refund belongs to its order

    @property
    def amount(self) -> int:
        """The cents at risk in all orders of the group."""
        return cents_at_risk(self.findings)

    @property
    def last_seen(self) -> datetime | None:
        """The sandbox time of the newest request or webhook with the mistake; None if no time is known."""
        lines = (line for each in self.findings for line in each.requests if line[:1].isdigit())
        times = [line.partition("  ")[0] for line in lines]  # other lines quote a rule of the scenario
        return datetime.fromisoformat(max(times)) if times else None

    @property
    def risk(self) -> str:
        """The cost of the mistake, with the amount of all orders; empty for hints."""
        sentence = self.first.consequence
        return f"{euros(self.amount)}: {sentence}" if sentence and self.amount else sentence

    @property
    def others(self) -> list[str]:
        """The problems of the group, except the first one."""
        return list(dict.fromkeys(each.problem for each in self.findings))[1:]


def cents_at_risk(findings: Iterable[Finding]) -> int:
    """Sum the cents at risk; an order with several findings counts once."""
    amounts: dict[object, int] = {}
    for each in findings:
        order = each.order_id or id(each)
        amounts[order] = max(amounts.get(order, 0), each.amount)
    return sum(amounts.values())


def group_findings(findings: Iterable[Finding], listed_id: Callable[[str], str] = str) -> list[FindingGroup]:
    """Group the findings of a review: open mistakes first, then by amount, largest first.

    A group has one cause, and one consequence for the money. ``listed_id`` returns the id under which the
    list of orders shows an order or a refund.
    """
    by_kind: dict[tuple[str, str, str, bool], list[Finding]] = defaultdict(list)
    for finding in findings:
        by_kind[finding.rule, finding.advice, finding.consequence, finding.is_open].append(finding)
    numbers = Counter[str]()
    groups = []
    for (rule, *_), alike in sorted(by_kind.items()):
        numbers[rule] += 1
        name = rule if numbers[rule] == 1 else f"{rule}.{numbers[rule]}"
        orders = dict.fromkeys(listed_id(each.order_id) for each in alike if each.order_id is not None)
        groups.append(FindingGroup(name, alike[0], alike, list(orders)))
    return sorted(groups, key=lambda group: (not group.first.is_open, -group.amount))


CallKind = tuple[str, str, str, bytes]
"""The identity of a call: verb, order, path and body."""


class MoneyCall(NamedTuple):
    """A call by the shop that moves money: its verb, order and body."""

    entry: LoggedRequest
    verb: str
    order_id: str
    body: bytes

    @property
    def kind(self) -> CallKind:
        """The identity of the call, which a retry shares."""
        return self.verb, self.order_id, self.entry.path.rstrip("/"), self.body

    def is_accepted(self) -> bool:
        """Whether the service executed the call."""
        fault = self.entry.fault
        is_lost = fault is not None and fault.is_after and fault.loses_response
        is_refused = self.entry.rule not in (None, FAULT_RULE)
        return self.entry.status in MADE_STATUSES or (
            is_lost and self.entry.order_id is not None and not is_refused
        )


def money_call(entry: LoggedRequest) -> MoneyCall | None:
    """Return the movement of money by a POST: a capture, void, refund, or charge to a stored card."""
    match = MONEY_PATH.search(entry.path)
    order_id = order_in(entry)
    if match is not None and order_id is not None:
        return MoneyCall(entry, match[1], order_id, entry.request)
    if order_id is None and VAULT_TOKEN in entry.request and b"recurring" in entry.request:
        return MoneyCall(entry, CHARGES_VERB, "", entry.request)
    return None


def money_calls(requests: Iterable[LoggedRequest]) -> list[MoneyCall]:
    """Return the calls that move money, except for those that an HTTP client may have sent again."""
    posts = (entry for entry in requests if entry.method == "POST" and entry.resent_of is None)
    return [call for call in map(money_call, posts) if call is not None]


@dataclass(frozen=True, eq=False)
class ReviewedHistory(OrderLog):
    """The log of an order, or a part of several logs, with what the checks look for in it."""

    is_of_charges: bool = False  # charges to stored cards, each of which belongs to another order

    @cached_property
    def moves(self) -> "Sequence[MoneyCall]":
        """The movements of money in these orders, or the charges to stored cards."""
        return [
            call for call in money_calls(self.requests) if (call.verb == CHARGES_VERB) == self.is_of_charges
        ]

    @cached_property
    def return_visits(self) -> Sequence[PerformedAction]:
        """The customers' returns to the shop."""
        return [action for action in self.of(PerformedAction) if action.action == RETURN]

    @cached_property
    def reached(self) -> Sequence[ReachedStatus]:
        """The statuses reached by the orders and their attempts."""
        return self.of(ReachedStatus)

    @cached_property
    def reads(self) -> "Entries":
        """The successful reads, by order."""
        return _by_order(entry for entry in filter(is_read, self.requests) if entry.status in READ_STATUSES)

    @cached_property
    def attempted_reads(self) -> "Entries":
        """The successful reads, and the reads that a fault prevented, by order."""
        return _by_order(
            entry
            for entry in filter(is_read, self.requests)
            if entry.status in READ_STATUSES or entry.fault is not None
        )

    @cached_property
    def webhooks_of(self) -> Mapping[str, Sequence[Delivery]]:
        """The webhooks, by order."""
        by_order: dict[str, list[Delivery]] = defaultdict(list)
        for webhook in self.webhooks:
            by_order[webhook.order_id].append(webhook)
        return by_order

    @cached_property
    def requests_of(self) -> "Entries":
        """All requests, by order."""
        return _by_order(self.requests)

    @cached_property
    def statuses(self) -> Mapping[str, str | None]:
        """The order's status in each response, by request id; None for a response without a status."""
        return {entry.id: status_in(entry) for entry in self.requests}

    def amount(self, order_id: str | None) -> int:
        """Return the amount of an order in cents; 0 for an unknown order."""
        order = self.orders.get(order_id or "")
        return 0 if order is None else order.amount_cents


def is_late(delay: timedelta | None) -> bool:
    """Whether a read came too late after its reason, in sandbox time, or never."""
    return delay is None or delay > READ_WITHIN


def describe_late(delays: Sequence[timedelta | None]) -> str:
    """Say how much later the order was read; empty if one of the reads is missing."""
    known = [delay for delay in delays if delay is not None]
    return f" (read {longest_unit(max(known))} later)" if len(known) == len(delays) else ""


def format_request(entry: LoggedRequest) -> str:
    """Format a request in one line."""
    return f"{timestamp(entry.at)}  {entry.method} {entry.path} -> {entry.status}"


def format_attempt(attempt: WebhookAttempt) -> str:
    """Format a webhook attempt in one line."""
    return f"{timestamp(attempt.at)}  webhook {attempt.number}"


def start_of(entry: LoggedRequest) -> datetime:
    """Return the real time at which a request arrived."""
    return entry.real_at or entry.at


def end_of(entry: LoggedRequest) -> datetime:
    """Return the real time at which a request was answered."""
    return entry.answered_at or start_of(entry)


def is_from_shop(attempt: WebhookAttempt) -> bool:
    """Whether the response came from the shop rather than from a fault."""
    return not attempt.is_withheld


def is_answer_lost(entry: LoggedRequest) -> bool:
    """Whether a fault withheld the response from the shop."""
    return entry.fault is not None and entry.fault.loses_response


def advise_on_loss(entry: LoggedRequest, advice: str) -> str:
    """Return the advice after a lost response; some clients do not report that a body was cut short."""
    is_cut = entry.fault is not None and isinstance(entry.fault.effect, Truncate)
    return f"{advice} {CUT_SHORT}" if is_cut else advice


def parse_object(body: bytes) -> dict[str, Any]:
    """Parse a body as an object; empty for other values, or if the journal truncated it."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def status_in(entry: LoggedRequest) -> str | None:
    """Return the status of an order, or of its newest attempt, in a response."""
    status = parse_object(entry.response).get("status")
    return status if isinstance(status, str) else None


def status_read(entry: LoggedRequest) -> str | None:
    """Return the order's status in the response to a shop's call on the order itself, if the shop got it."""
    if not entry.is_evidence or (entry.fault is not None and entry.fault.changes_response):
        return None
    is_order = entry.path.rstrip("/").endswith(("/orders", entry.order_id or "/"))
    is_answered = entry.status is not None and entry.status < NOT_CHANGED
    return status_in(entry) if is_order and is_answered else None


def order_in(entry: LoggedRequest) -> str | None:
    """Return the order id in a request's path, if any."""
    _, collection, *segments = [*entry.path.strip("/").split("/"), "", ""]
    return segments[0] or None if collection == ORDER_PATH else None


def is_read(entry: LoggedRequest) -> bool:
    """Whether a request reads an existing order."""
    return bool(entry.method == "GET" and entry.order_id and entry.path.rstrip("/").endswith(entry.order_id))


def is_change(entry: LoggedRequest) -> bool:
    """Whether the service executed a capture, void or cancellation."""
    is_sent = entry.method == "DELETE" or CAPTURE_OR_VOID.search(entry.path) is not None
    return is_sent and entry.status in MADE_STATUSES


Entries = defaultdict[str, list[LoggedRequest]]
"""Requests by order; an empty list for an order without requests."""


def _by_order(entries: Iterable[LoggedRequest]) -> Entries:
    by_order: Entries = defaultdict(list)
    for entry in entries:
        by_order[entry.order_id or ""].append(entry)
    return by_order


def whole_number(value: object) -> int | None:
    """Return a whole number unchanged; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def format_times(number: int) -> str:
    """Spell a number of repetitions, such as ``twice``."""
    return {1: "once", 2: "twice"}.get(number, f"{number_in_words(number)} times")


def number_in_words(number: int) -> str:
    """Spell a small number as a word."""
    return NUMBER_WORDS[number] if number < len(NUMBER_WORDS) else str(number)
