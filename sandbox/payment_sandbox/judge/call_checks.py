"""Checks on calls: duplicate orders, late captures, blind retries, ignored keys, and refusals."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from payment_sandbox.judge.evidence import (
    HINT,
    MISTAKE,
    Finding,
    ReviewedHistory,
    advise_on_loss,
    format_request,
    is_answer_lost,
    number_in_words,
    order_in,
    parse_object,
    start_of,
    whole_number,
)
from payment_sandbox.judge.lessons import CALL_VERBS, ERRORS_PAGE, RULES_PAGE
from payment_sandbox.orders.amounts import euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import REFUND_WITHOUT_AMOUNT
from payment_sandbox.orders.refusals import OWN_NUMBER, READ_ONLY
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.journal import LoggedRequest, ReachedStatus

CREATION_PATH: Final = "/v1/orders"
REFUSAL_STATUSES: Final = (400, 404, 405, 409, 412, 413, 415)
CONFLICT_STATUSES: Final = (409, 412)
READ_ORDER_FIRST: Final = (
    "Read the order before you act; error.allowed and Sandbox-Explain list the possible calls."
)
CORRECT_REQUEST: Final = "Correct the request: its response lists all violations."
LATE_CAPTURE_RULE: Final = "CAP-04"
UNPAYABLE_STATUSES: Final = ("cancelled", "expired", "error")
"""The statuses of orders that can no longer be paid."""
WHOLE_OR_PARTIAL: Final = re.compile(r"/(captures|voids)(/amount|/orderlines)?/?$")
PARTIAL_CALL_KEYS: Final = {"amount": "amount", "order_lines": "orderlines"}
"""The path segment of partial captures and voids, by the key of the amount or the lines."""


def is_creation(entry: LoggedRequest) -> bool:
    """Whether the shop creates an order by a request, which its HTTP client has not sent again."""
    return entry.resent_of is None and is_creation_request(entry)


def is_creation_request(entry: LoggedRequest) -> bool:
    """Whether a request creates an order."""
    return (entry.method, entry.path.rstrip("/")) == ("POST", CREATION_PATH)


class Creation(NamedTuple):
    """A call that created an order, and what another order for the same basket is compared with."""

    entry: LoggedRequest
    order: Order
    statuses: Sequence[ReachedStatus]
    number: str | None
    body: str
    is_cancelled: bool

    @property
    def basket(self) -> tuple[str, str]:
        """The key of the basket: the shop's number of the order, or without a number the whole order."""
        return ("number", self.number) if self.number is not None else ("body", self.body)

    def was_payable(self, following: "Creation") -> bool:
        """Whether the order could still be paid, or was paid, when the next order was created."""
        if not self.statuses or self.statuses[0].status != OrderStatus.NEW:  # the journal is too short
            return self.order.status not in UNPAYABLE_STATUSES
        before = [each.status for each in self.statuses if each.real_at <= start_of(following.entry)]
        return not before or before[-1] not in UNPAYABLE_STATUSES


def creations_in(history: ReviewedHistory) -> Iterator[Creation]:
    """Yield the calls that created an order."""
    cancelled = {each.order_id for each in history.requests if each.method == "DELETE" and each.status == 200}
    for entry in filter(is_creation_request, history.requests):
        order, data = history.orders.get(entry.order_id or ""), parse_object(entry.request)
        if order is not None and data:
            number = data.get("merchant_order_id")
            own = [
                each for each in history.reached if each.order_id == order.id and each.payment_method is None
            ]
            yield Creation(
                entry,
                order,
                own,
                number if isinstance(number, str) else None,
                json.dumps(data, sort_keys=True),
                order.id in cancelled,
            )


def find_duplicate_orders(basket: Sequence[Creation]) -> Iterator[Finding]:
    """Find baskets with two orders, the first of which was still payable when the second was created."""
    repeated = {finding.shown_by[-1] for finding in find_blind_retries(basket)}  # told there
    orders: dict[str, Creation] = {}
    for creation in basket:
        entry = creation.entry
        if creation.number is not None and entry.resent_of is None and entry.id not in repeated:
            orders.setdefault(creation.order.id, creation)
    created = list(orders.values())
    payable = [each for each, following in pairwise(created) if each.was_payable(following)]
    if payable:
        yield _report_duplicate_orders([*payable, created[-1]])


def _report_duplicate_orders(created: Sequence[Creation]) -> Finding:
    is_healed = sum(not each.is_cancelled for each in created) == 1
    return Finding(
        "ORD-07",
        f"{number_in_words(len(created)).capitalize()} orders have the number {created[0].number!r}, "
        "and a customer could pay more than one",
        "Store the id of each new order, and cancel the order before you create another one.",
        created[-1].order.id,
        tuple(format_request(each.entry) for each in created),
        amount=sum(each.order.amount_cents for each in created[1:]),
        healed="your shop has cancelled the other orders" if is_healed else "",
        shown_by=tuple(each.entry.id for each in created),
    )


def find_late_captures(history: ReviewedHistory) -> Iterator[Finding]:
    """Find captures after the expiry of the authorization."""
    for entry in history.requests:
        if entry.rule == LATE_CAPTURE_RULE and "/captures" in entry.path:
            yield Finding(
                LATE_CAPTURE_RULE,
                "Your shop captured after the authorization had expired",
                "Request an expiration_period that covers your shipping time, and capture before it ends.",
                entry.order_id,
                (format_request(entry),),
                amount=history.amount(entry.order_id),
                shown_by=(entry.id,),
            )


def find_blind_retries(basket: Sequence[Creation]) -> Iterator[Finding]:
    """Find create calls retried after a lost response although the order existed."""
    last_lost: dict[str, Creation] = {}  # by request body
    for creation in basket:
        if creation.entry.resent_of is not None:
            continue
        first = last_lost.pop(creation.body, None)
        if first is not None and first.order.id != creation.order.id and first.was_payable(creation):
            yield Finding(
                "CTL-23",
                "Your shop created the order again after its response was lost, and now there are two orders",
                advise_on_loss(
                    first.entry,
                    "After a lost response, first check whether the order exists: its webhooks show it.",
                ),
                first.order.id,
                (format_request(first.entry), format_request(creation.entry)),
                amount=creation.order.amount_cents,
                shown_by=(first.entry.id, creation.entry.id),
            )
        if is_answer_lost(creation.entry):
            last_lost[creation.body] = creation


def find_ignored_keys(history: ReviewedHistory) -> Iterator[Finding]:
    """Find unknown keys in requests, which the service ignores."""
    entries_by_key: dict[tuple[str, str | None, str], list[LoggedRequest]] = defaultdict(list)
    for entry in history.requests:
        for name, nearest in entry.unknown:
            matched = WHOLE_OR_PARTIAL.search(entry.path) if name in PARTIAL_CALL_KEYS else None
            other = f"{matched[1]}/{PARTIAL_CALL_KEYS[name]}/" if matched is not None else ""
            entries_by_key[name, nearest, other].append(entry)
    for (name, nearest, other), entries in entries_by_key.items():
        if other:
            yield from (_report_ignored_part(history, entry, name, other) for entry in entries)
        elif _is_answered(name, entries):
            yield _report_read_only(name, entries)
        else:
            yield _report_ignored_key(name, nearest, entries)


def _is_answered(path: str, entries: Sequence[LoggedRequest]) -> bool:
    """Whether the answer to each creation has the key that was ignored, which is therefore read-only."""
    parent, _, key = path.rpartition(".")
    for entry in entries:
        order = parse_object(entry.response) if is_creation(entry) else {}
        records = {"": [order], "transactions[0]": order.get("transactions", ())}.get(parent, ())
        if not any(key in each for each in records):
            return False
    return True


def _report_read_only(name: str, entries: Sequence[LoggedRequest]) -> Finding:
    """Report a key that only answers have, which is a mistake for an order's id."""
    own_number = OWN_NUMBER if name == "id" else ""
    return Finding(
        "SET-12",
        f"{name} is {READ_ONLY}{own_number}",
        "Leave it out.",
        entries[0].order_id if len(entries) == 1 else None,
        tuple(map(format_request, entries)),
        kind=MISTAKE if name == "id" else HINT,
        shown_by=tuple(entry.id for entry in entries),
    )


def _report_ignored_key(name: str, nearest: str | None, entries: Sequence[LoggedRequest]) -> Finding:
    # Only orders have a field for the shop's own values.
    has_place = not name.startswith("?") and all(map(is_creation, entries))
    advice = "Leave it out, or put it into extra." if has_place else "Leave it out."
    subject = f"query parameter {name[1:]!r}" if name.startswith("?") else f"key {name!r}"
    meant = f"; did you mean {nearest!r}?" if nearest is not None else ""
    return Finding(
        "SET-12",
        f"The service does not know the {subject} and ignored it{meant}",
        f"Send {nearest!r} instead." if nearest is not None else advice,
        entries[0].order_id if len(entries) == 1 else None,
        tuple(map(format_request, entries)),
        shown_by=tuple(entry.id for entry in entries),
    )


def _report_ignored_part(history: ReviewedHistory, entry: LoggedRequest, name: str, other: str) -> Finding:
    """Report a capture or void of everything although the request named a part."""
    amount = whole_number(parse_object(entry.request).get("amount")) if name == "amount" else None
    verb, past = CALL_VERBS[other.partition("/")[0]]
    meant = euros(amount) if amount is not None else f"a part of its {name}"
    is_whole = entry.path.rstrip("/").endswith(("/captures", "/voids"))
    did = f"and {past} everything" if is_whole else "but the key was ignored"
    surplus = history.amount(order_in(entry)) - amount if amount is not None and is_whole else 0
    return Finding(
        "SET-12",
        f"Your shop asked to {verb} {meant} {did}: this call takes no {name!r}",
        f"Send {name!r} to {other}.",
        order_in(entry),
        (format_request(entry),),
        amount=max(0, surplus),
        risk="the customer pays for goods that do not ship" if verb == "capture" else "goods ship unpaid",
        shown_by=(entry.id,),
    )


def find_warnings(history: ReviewedHistory) -> Iterator[Finding]:
    """Find requests accepted with a warning; what the specification allows is a hint."""
    for entry in history.requests:
        for warning in entry.warnings:
            yield Finding(
                "SET-31",
                f"The service accepted a request with a warning: {warning}",
                "Send what the warning asks for: other services of this family may refuse such requests.",
                entry.order_id,
                (format_request(entry),),
                kind=HINT if warning == REFUND_WITHOUT_AMOUNT else MISTAKE,
                shown_by=(entry.id,),
            )


class Refusal(NamedTuple):
    """A refused call that no mistake explains, and its error."""

    entry: LoggedRequest
    error: str  # may be empty

    @property
    def kind(self) -> tuple[int, str, str | None]:
        """The status, the type of the error and the rule."""
        return self.entry.status or 0, self.error.partition(":")[0], self.entry.rule


def refusals_in(history: ReviewedHistory) -> Iterator[Refusal]:
    """Yield the calls that the service refused, rather than a fault."""
    for entry in history.requests:
        if entry.status in REFUSAL_STATUSES and not entry.fault and entry.rule != LATE_CAPTURE_RULE:
            yield Refusal(entry, entry.error() or "")


def find_refused_calls(refusals: Iterable[Refusal]) -> Iterator[Finding]:
    """Add a hint for each kind of refused call; a test may intend a refusal."""
    groups: dict[tuple[int, str, str | None], list[Refusal]] = defaultdict(list)
    for refusal in refusals:
        groups[refusal.kind].append(refusal)
    for (status, _, rule), alike in groups.items():
        first, errors = alike[0], {each.error for each in alike}
        calls = "a call" if len(alike) == 1 else f"{len(alike)} calls"
        lead = ", the first with" if len(errors) > 1 else ":"
        yield Finding(
            rule or "SET-03",
            f"The service refused {calls}{lead} {status} {first.error}",
            READ_ORDER_FIRST if status in CONFLICT_STATUSES else CORRECT_REQUEST,
            first.entry.order_id if len(alike) == 1 else None,
            tuple(format_request(each.entry) for each in alike),
            HINT,
            page=f"{RULES_PAGE}#{rule.lower()}" if rule is not None else ERRORS_PAGE,
            shown_by=tuple(each.entry.id for each in alike),
        )
