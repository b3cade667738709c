"""Coverage: the outcomes, webhooks and refusals handled by a shop, out of all possible cases.

A case is covered once it has occurred without an open finding. Cases played by hand
are listed separately: they do not prove that the shop handles them by itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.judge import Finding
from payment_sandbox.methods import METHOD_NAMES, METHODS_BY_NAME
from payment_sandbox.orders.authorization import EntryKind
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import refusal_classes
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import MERCHANT_ACTOR, SHOP, LoggedRequest, PerformedAction
from payment_sandbox.projects.order_logs import OrderLog, log_of, order_logs
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variation_catalogue import webhook_coverage_checks

METHOD, WEBHOOK, REFUSAL, RULE = GROUPS = ("method", "webhook", "refusal", "rule")

PAID, DECLINED, CANCELLED, EXPIRED = "paid", "declined", "cancelled", "expired"
PAID_LATE, PAID_IN_PART, PAID_TOO_MUCH = "paid after expiry", "paid in part", "paid too much"
AUTHORIZED, CAPTURED, CAPTURED_IN_PART = "authorized", "captured", "captured in part"
VOIDED, LAPSED = "voided", "authorization expired"
SCREENED_OUT, SCREENED_LATE = "declined by screening", "screening took time"
REFUNDED, REFUNDED_IN_PART, REFUND_FAILED = "refunded", "refunded in part", "refund failed"
STORED, CHARGED_AGAIN, CHARGE_FAILED = "card stored", "stored card charged", "stored card declined"

OUTCOMES_BY_ACTION: Final[Mapping[str, Sequence[str]]] = {
    "capture": (CAPTURED, CAPTURED_IN_PART),
    "void": (VOIDED,),
    "refund": (REFUNDED, REFUNDED_IN_PART, REFUND_FAILED),
    "cancel": (CANCELLED,),
}
CREATED: Final = "create"
DELIVERED: Final = "delivered"
CONTROL_RULES: Final = ("CTL-",)


HOW_TO_MEET: Final[Mapping[str, str]] = {
    PAID: "pay on the payment page",
    DECLINED: "choose Declined on the payment page",
    CANCELLED: "choose Cancelled on the payment page",
    EXPIRED: "choose Expired on the payment page, or move the clock until the order expires",
    PAID_LATE: "use the scenario transfer-late",
    PAID_IN_PART: "use the scenario transfer-wrong-sum",
    PAID_TOO_MUCH: "let the bank credit more than the amount, with a scenario",
    AUTHORIZED: "let your shop create an order with the capture mode manual, and pay it",
    CAPTURED: "let your shop capture the whole amount",
    CAPTURED_IN_PART: "let your shop capture a part of the amount first",
    VOIDED: "let your shop void an authorization",
    LAPSED: "capture nothing, and move the clock until the authorization expires",
    SCREENED_OUT: "order with the email address declined@example.com",
    SCREENED_LATE: "order with the email address needs-time@example.com",
    STORED: "let your shop create a first payment for one click or for recurring payments, and pay it",
    CHARGED_AGAIN: "let your shop charge a stored card by its vault token",
    CHARGE_FAILED: "use the scenario recurring-declined, and let your shop charge a stored card",
    REFUNDED: "let your shop refund the whole amount",
    REFUNDED_IN_PART: "let your shop refund a part of the amount",
    REFUND_FAILED: "use the scenario refund-fails-later, and let your shop refund",
    DELIVERED: "set the webhook address, and let your shop answer with 200",
    "twice": "switch on the fault that sends every webhook twice",
    "lost": "use the scenario webhook-lost",
    "late": "switch on the fault that delays every webhook",
    "retried": "let your shop answer a webhook with an error, and its retry with 200",
    "before the response": "set the webhook timing to before_response",
    "failed for good": "switch on the fault that makes your shop unreachable, and move the clock by an hour",
}
"""What to do for each outcome of a payment or a webhook."""


class CellKey(NamedTuple):
    """The key of a cell in the coverage matrix."""

    group: str
    subject: str
    case: str


def _actors_in_scenarios(method: str) -> frozenset[str]:
    """List the actors of a method that a scenario can control: customer, screening, processor, credit."""
    return frozenset().union(*METHODS_BY_NAME[method].capabilities.outcomes)


@cache
def possible_outcomes(method: str) -> Sequence[str]:
    """List the possible outcomes of payments with a method."""
    capabilities, keys = METHODS_BY_NAME[method].capabilities, _actors_in_scenarios(method)
    outcomes = [PAID] if not capabilities.authorizes or capabilities.default_capture_mode is None else []
    outcomes += [DECLINED, CANCELLED] if "customer" in keys else []
    outcomes += [PAID_LATE, PAID_IN_PART, PAID_TOO_MUCH] if "credit" in keys else []
    outcomes += [EXPIRED]
    if capabilities.authorizes:
        outcomes += [AUTHORIZED, CAPTURED, CAPTURED_IN_PART, VOIDED, LAPSED]
    if "screening" in keys:
        outcomes += [SCREENED_OUT, *([SCREENED_LATE] if "needs-time" in capabilities.screenings else [])]
    if "processor" in keys:
        outcomes += [STORED, CHARGED_AGAIN, CHARGE_FAILED]
    return [*outcomes, REFUNDED, REFUNDED_IN_PART, REFUND_FAILED]


def refusal_rules() -> list[str]:
    """List the rules by which the merchant API refuses well-formed requests."""
    rules = {kind.rule for kind in refusal_classes()}
    return sorted(rule for rule in rules if rule and not rule.startswith(CONTROL_RULES))


class Occurrences(NamedTuple):
    """The occurrences of a case: ids of orders or refused requests, or names of tests."""

    right: Sequence[str] = ()
    wrong: Sequence[str] = ()  # with an open review finding
    by_hand: Sequence[str] = ()


NO_OCCURRENCES: Final = Occurrences()
RATING_NAMES: Final = Occurrences._fields
RIGHT, WRONG, BY_HAND = RATING_NAMES


def covered_cells(project: Project, findings: Iterable[Finding]) -> dict[CellKey, Occurrences]:
    """Return the covered cells of a project, judged by the findings of its review."""
    epoch, name = project.epoch, project.epoch.state.scenario.name
    places: dict[CellKey, dict[str, dict[str, None]]] = {
        CellKey(RULE, name, f"rule {index + 1}"): {RIGHT: {name: None}} for index in epoch.state.rule_uses
    }
    mistakes = [finding for finding in findings if finding.is_open]
    wrong = {each.order_id for each in mistakes} | {id_ for each in mistakes for id_ in each.shown_by}
    is_complete = not epoch.journal.dropped_count
    for case in chain.from_iterable(log.derive(_cases) for log in _all_logs(epoch)):
        rating = WRONG if not wrong.isdisjoint(case.judged) else case.rate(is_complete)
        places.setdefault(case.key, {}).setdefault(rating, {})[case.occurrence] = None
    return {
        key: Occurrences(*(list(each.get(one, ())) for one in RATING_NAMES)) for key, each in places.items()
    }


def _all_logs(epoch: Epoch) -> Iterator[OrderLog]:
    """Yield the logs, newest first, and those of orders without records."""
    logs = order_logs(epoch)
    yield from reversed(list(logs.values()))
    orders = epoch.store.orders_newest_first()
    yield from (log_of(epoch, each) for each in orders if not each.is_refund and each.id not in logs)


class _Case(NamedTuple):
    """An occurrence of a case, before its findings are known."""

    key: CellKey
    occurrence: str
    judged: Sequence[str]
    """The ids of the orders or the call whose findings make the occurrence wrong."""
    is_by_hand: bool = False
    is_unseen: bool = False
    """Whether neither a call nor an answered webhook has shown the order to the shop."""

    def rate(self, is_complete: bool) -> str:
        """Rate an occurrence without findings; in an incomplete journal, a call may be missing."""
        return BY_HAND if self.is_by_hand or (self.is_unseen and is_complete) else RIGHT


def _cases(log: OrderLog) -> list[_Case]:
    actions = log.of(PerformedAction)
    by_hand = {(each.order_id, each.action) for each in actions if each.actor == MERCHANT_ACTOR}
    seen = {entry.order_id for entry in log.requests}
    seen |= {each.order_id for each in log.webhooks if each.state is DeliveryState.DELIVERED}

    def case(key: CellKey, order: Order, outcome: str = "") -> _Case:
        done = (CREATED, *(action for action, outcomes in OUTCOMES_BY_ACTION.items() if outcome in outcomes))
        judged = (order.id, *(refund.refund_id for refund in order.refunds))
        is_by_hand = not by_hand.isdisjoint((order.id, action) for action in done)
        return _Case(key, order.id, judged, is_by_hand, not order.is_refund and order.id not in seen)

    outcomes = [case(*each) for each in _outcomes_in(log)]
    return [*outcomes, *(case(*each) for each in _webhooks_in(log)), *_refusals(log)]


def _outcomes_in(log: OrderLog) -> Iterator[tuple[CellKey, Order, str]]:
    for order in log.orders.values():
        for attempt in order.transactions if not order.is_refund else ():
            for outcome in _outcomes(order, attempt):
                yield CellKey(METHOD, attempt.method, outcome), order, outcome


def _webhooks_in(log: OrderLog) -> Iterator[tuple[CellKey, Order]]:
    checks = webhook_coverage_checks() if log.webhooks else {}
    for delivery in log.webhooks:
        order = log.orders[delivery.order_id]
        if delivery.state is DeliveryState.DELIVERED and not delivery.is_lost:
            yield CellKey(WEBHOOK, DELIVERED, ""), order
        names = (name for name, covers in checks.items() if covers(delivery, log.webhooks_first))
        yield from ((CellKey(WEBHOOK, name, ""), order) for name in names)


def _refusals(log: OrderLog) -> Iterator[_Case]:
    for entry in log.of(LoggedRequest):
        if entry.rule is not None:
            key = CellKey(REFUSAL, entry.rule, "")
            yield _Case(key, entry.id, (entry.id,), is_by_hand=entry.caller != SHOP)


def _outcomes(order: Order, attempt: Transaction) -> Iterator[str]:
    if _has_not_begun(attempt):
        return
    possible = possible_outcomes(attempt.method)
    for part in _outcome_finders(attempt.method):
        yield from (outcome for outcome, holds in part(attempt).items() if holds and outcome in possible)
    if order.refunds:
        yield from (outcome for outcome, holds in _refund_outcomes(order).items() if holds)


def _has_not_begun(attempt: Transaction) -> bool:
    return attempt.is_open and not attempt.credited_cents and "screening" not in attempt.plan


Outcomes = Mapping[str, bool]
"""Outcomes of payments, and whether a payment has reached them."""


def _plain_outcomes(attempt: Transaction) -> Outcomes:
    is_screened = "screening" in attempt.plan
    return {
        PAID: attempt.status == TransactionStatus.COMPLETED and attempt.authorization is None,
        DECLINED: attempt.status == TransactionStatus.ERROR and not is_screened,
        CANCELLED: attempt.status == TransactionStatus.CANCELLED and not is_screened,
        EXPIRED: attempt.status == TransactionStatus.EXPIRED and attempt.authorization is None,
    }


def _transfer_outcomes(attempt: Transaction) -> Outcomes:
    has_expired = TransactionStatus.EXPIRED in [event.event for event in attempt.events]
    return {
        PAID_LATE: attempt.status == TransactionStatus.COMPLETED and has_expired,
        PAID_IN_PART: 0 < attempt.credited_cents < attempt.amount_cents,
        PAID_TOO_MUCH: attempt.credited_cents > attempt.amount_cents,
    }


def _screening_outcomes(attempt: Transaction) -> Outcomes:
    return {
        SCREENED_OUT: DECLINED in (attempt.plan.get("screening"), attempt.plan.get("then")),
        SCREENED_LATE: attempt.plan.get("screening") == "needs-time",
    }


def _card_outcomes(attempt: Transaction) -> Outcomes:
    if not attempt.asked:
        return {}
    is_paid, details = attempt.status == TransactionStatus.COMPLETED, attempt.asked.values()
    is_charged = bool({"one-click", "recurring"}.intersection(map(str, details)))
    return {
        STORED: is_paid and "first" in details,
        CHARGED_AGAIN: is_paid and is_charged,
        CHARGE_FAILED: attempt.status == TransactionStatus.ERROR and is_charged,
    }


def _authorization_outcomes(attempt: Transaction) -> Outcomes:
    authorization = attempt.authorization
    if authorization is None:
        return {}
    captures = [entry for entry in authorization.entries if entry.taken is EntryKind.CAPTURED]
    return {
        AUTHORIZED: True,
        CAPTURED: authorization.captured_cents == authorization.original_cents,
        CAPTURED_IN_PART: bool(captures) and captures[0].amount_cents < authorization.original_cents,
        VOIDED: authorization.voided_cents > 0,
        LAPSED: attempt.status == TransactionStatus.EXPIRED,
    }


OUTCOMES_BY_DECISION: Final = {
    "credit": _transfer_outcomes,
    "screening": _screening_outcomes,
    "processor": _card_outcomes,
}


@cache
def _outcome_finders(method: str) -> "Sequence[Callable[[Transaction], Outcomes]]":
    """Return the functions that detect the outcomes of payments with a method."""
    parts = (
        part for decided, part in OUTCOMES_BY_DECISION.items() if decided in _actors_in_scenarios(method)
    )
    return _plain_outcomes, _authorization_outcomes, *parts


def _refund_outcomes(order: Order) -> Outcomes:
    settled = [refund for refund in order.refunds if not refund.failed]
    cents = sum(refund.amount_cents for refund in settled)
    return {
        REFUNDED: bool(settled) and cents == order.received_cents,
        REFUNDED_IN_PART: 0 < cents < order.received_cents,
        REFUND_FAILED: any(refund.failed for refund in order.refunds),
    }


def enabled_methods(project: Project) -> list[str]:
    """List the methods enabled by a shop, in the usual order; empty if all are enabled."""
    chosen = project.settings.payment_methods
    return [] if set(chosen) == set(METHOD_NAMES) else [name for name in METHOD_NAMES if name in chosen]


Cells = Mapping[CellKey, Occurrences]
"""Covered cells, with the ids of orders or the names of tests."""


class CoverageGroup(NamedTuple):
    """A row of the matrix."""

    group: str
    title: str
    cells: Mapping[str, Occurrences]  # by outcome; empty occurrences if uncovered

    @property
    def covered(self) -> int:
        """The number of covered cells."""
        return sum(bool(cell.right) for cell in self.cells.values())

    @property
    def missing(self) -> list[str]:
        """The outcomes that have not occurred."""
        return [name for name, cell in self.cells.items() if not cell.right and not cell.wrong]

    @property
    def wrong(self) -> list[str]:
        """The outcomes that have occurred only with mistakes."""
        return [name for name, cell in self.cells.items() if cell.wrong and not cell.right]


class Matrix(NamedTuple):
    """The coverage matrix of a suite or a project."""

    methods: list[CoverageGroup]
    others: list[CoverageGroup]
    is_chosen: bool  # whether the rows are the enabled methods rather than the used methods

    @property
    def percent(self) -> float:
        """The percentage of covered cells among the payment methods."""
        cells = sum(len(row.cells) for row in self.methods)
        return 100 * sum(row.covered for row in self.methods) / cells if cells else 0.0


def build_matrix(cells: Cells, enabled: Iterable[str]) -> Matrix:
    """Build the matrix for the enabled methods, or if all are enabled, for the used methods."""
    used = {one.subject for one in cells if one.group == METHOD}
    chosen = set(enabled)
    methods = [_method_group(name, cells) for name in METHOD_NAMES if name in (chosen or used)]
    return Matrix(methods, [row for row in _other_groups(cells) if row.cells], bool(chosen))


def _method_group(name: str, cells: Cells) -> CoverageGroup:
    return CoverageGroup(
        METHOD,
        name,
        {
            outcome: cells.get(CellKey(METHOD, name, outcome), NO_OCCURRENCES)
            for outcome in possible_outcomes(name)
        },
    )


def _other_groups(cells: Cells) -> list[CoverageGroup]:
    webhooks = {
        outcome: cells.get(CellKey(WEBHOOK, outcome, ""), NO_OCCURRENCES)
        for outcome in (DELIVERED, *webhook_coverage_checks())
    }
    refusals = {rule: cells.get(CellKey(REFUSAL, rule, ""), NO_OCCURRENCES) for rule in refusal_rules()}
    rules = {f"{one.subject}, {one.case}": cells[one] for one in sorted(cells) if one.group == RULE}
    return [
        CoverageGroup(WEBHOOK, "webhooks", webhooks),
        CoverageGroup(REFUSAL, "refusals", refusals),
        CoverageGroup(RULE, "scenario rules", rules),
    ]


def how_to_meet(group: str, case: str) -> str:
    """Say how to meet a case; empty for refusals and scenarios, which their rules describe."""
    return HOW_TO_MEET.get(case, "") if group in (METHOD, WEBHOOK) else ""


def cell_key(group: str, title: str, case: str) -> CellKey:
    """Return the key of the cell for an outcome in a row."""
    if group == METHOD:
        return CellKey(METHOD, title, case)
    scenario, _, rule = case.partition(", ")
    return CellKey(group, scenario, rule)


def coverage(project: Project, findings: Iterable[Finding]) -> Matrix:
    """Build the matrix of a project, judged by the findings of its review."""
    return build_matrix(covered_cells(project, findings), enabled_methods(project))
