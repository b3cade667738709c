"""Coverage: the outcomes, webhooks and refusals that a shop has handled, out of all possible cases.

A case counts if it occurred in a run and the review has no open finding about it. Cases that a person played
by hand, such as with "What if …", are listed apart: they do not show that the shop reaches them by itself.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.methods import BY_NAME, NAMES
from payment_sandbox.operations.review import Finding
from payment_sandbox.orders.authorization import Taken
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import kinds_of_refusals
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.journal import MERCHANT
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.variations import webhook_coverage_checks

METHOD, WEBHOOK, REFUSAL, RULE = "method", "webhook", "refusal", "rule"

PAID, DECLINED, CANCELLED, EXPIRED = "paid", "declined", "cancelled", "expired"
PAID_LATE, PAID_IN_PART, PAID_TOO_MUCH = "paid after expiry", "paid in part", "paid too much"
AUTHORIZED, CAPTURED, CAPTURED_IN_PART = "authorized", "captured", "captured in part"
VOIDED, LAPSED = "voided", "authorization expired"
SCREENED_OUT, SCREENED_LATE = "declined by screening", "screening took time"
REFUNDED, REFUNDED_IN_PART, REFUND_FAILED = "refunded", "refunded in part", "refund failed"
STORED, CHARGED_AGAIN, CHARGE_FAILED = "card stored", "stored card charged", "stored card declined"

TAKEN_BY_HAND: Final[Mapping[str, Sequence[str]]] = {
    "capture": (CAPTURED, CAPTURED_IN_PART),
    "void": (VOIDED,),
    "refund": (REFUNDED, REFUNDED_IN_PART, REFUND_FAILED),
    "cancel": (CANCELLED,),
}
CREATED: Final = "create"
DELIVERED: Final = "delivered"
CONTROL_RULES: Final = ("CTL-",)


class Met(NamedTuple):
    """A cell of the coverage matrix."""

    group: str
    subject: str
    what: str


def _decidable_actors(method: str) -> frozenset[str]:
    """List the actors of a method that a scenario decides: customer, screening, processor, credit."""
    return frozenset().union(*BY_NAME[method].capabilities.outcomes)


@cache
def possible_outcomes(method: str) -> Sequence[str]:
    """List the possible outcomes of payments with a method."""
    capabilities, keys = BY_NAME[method].capabilities, _decidable_actors(method)
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
    rules = {kind.rule for kind in kinds_of_refusals()}
    return sorted(rule for rule in rules if rule and not rule.startswith(CONTROL_RULES))


class CaseMet(NamedTuple):
    """The places that met a case: ids of orders or refused requests, or names of tests."""

    right: Sequence[str] = ()
    wrong: Sequence[str] = ()  # with an open finding of the review
    by_hand: Sequence[str] = ()


NEVER: Final = CaseMet()
HOW: Final = CaseMet._fields
RIGHT, WRONG, BY_HAND = HOW


def met_by(project: Project, findings: Iterable[Finding]) -> dict[Met, CaseMet]:
    """Return the cells that a project has met, judged by the findings of its review."""
    state, judged = project.epoch.state, _collect_evidence(project, findings)
    name = state.scenario.name
    places: dict[Met, dict[str, dict[str, None]]] = {
        Met(RULE, name, f"rule {index + 1}"): {RIGHT: {name: None}} for index in state.rule_uses
    }
    cases = chain(
        _met_outcomes(project, judged), _met_webhooks(project, judged), _met_refusals(project, judged)
    )
    for met, how, where in cases:
        places.setdefault(met, {}).setdefault(how, {})[where] = None
    return {met: CaseMet(*(list(each.get(how, ())) for how in HOW)) for met, each in places.items()}


class _Evidence(NamedTuple):
    """The orders and requests with open findings, and the manual actions on orders."""

    wrong: Container[str | None]  # ids of orders and of records
    by_hand: Container[tuple[str | None, str]]  # ids of orders, each with an action

    def order(self, order: Order, outcome: str = "") -> str:
        """Return how an order met a case: right, wrong or by hand."""
        if any(each in self.wrong for each in (order.id, *(each.refund_id for each in order.refunds))):
            return WRONG
        done = (CREATED, *(action for action, outcomes in TAKEN_BY_HAND.items() if outcome in outcomes))
        return BY_HAND if any((order.id, action) in self.by_hand for action in done) else RIGHT


def _collect_evidence(project: Project, findings: Iterable[Finding]) -> _Evidence:
    mistakes = [finding for finding in findings if finding.is_open]
    taken = project.epoch.journal.actions(None)
    return _Evidence(
        {each.order_id for each in mistakes} | {id_ for each in mistakes for id_ in each.shown_by},
        {(each.order_id, each.action) for each in taken if each.actor == MERCHANT},
    )


MetAt = Iterator[tuple[Met, str, str]]
"""Met cells: the cell, how it was met, and the id of an order or a request."""


def _met_outcomes(project: Project, judged: _Evidence) -> MetAt:
    for order in project.epoch.store.orders_newest_first():
        for attempt in order.transactions if not order.is_refund else ():
            for outcome in _outcomes(order, attempt):
                yield Met(METHOD, attempt.method, outcome), judged.order(order, outcome), order.id


def _met_webhooks(project: Project, judged: _Evidence) -> MetAt:
    variations, settings = webhook_coverage_checks(), project.settings.as_mapping()
    for delivery in project.epoch.store.deliveries():
        order = project.epoch.store.order(delivery.order_id)
        how = judged.order(order) if order is not None else RIGHT
        if delivery.state is DeliveryState.DELIVERED and not delivery.is_lost:
            yield Met(WEBHOOK, DELIVERED, ""), how, delivery.order_id
        met = (name for name, is_met in variations.items() if is_met(delivery, settings))
        yield from ((Met(WEBHOOK, name, ""), how, delivery.order_id) for name in met)


def _met_refusals(project: Project, judged: _Evidence) -> MetAt:
    for entry in project.epoch.journal.unmasked():
        if entry.rule is not None:
            yield Met(REFUSAL, entry.rule, ""), WRONG if entry.id in judged.wrong else RIGHT, entry.id


def _outcomes(order: Order, attempt: Transaction) -> Iterator[str]:
    if _is_untouched(attempt):
        return
    possible = possible_outcomes(attempt.method)
    for part in _outcome_finders(attempt.method):
        yield from (outcome for outcome, holds in part(attempt).items() if holds and outcome in possible)
    if order.refunds:
        yield from (outcome for outcome, holds in _refund_outcomes(order).items() if holds)


def _is_untouched(attempt: Transaction) -> bool:
    return attempt.is_open and not attempt.credited_cents and "screening" not in attempt.plan


Outcomes = Mapping[str, bool]
"""Outcomes of payments, and whether a payment has reached each."""


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
    captures = [entry for entry in authorization.entries if entry.taken is Taken.CAPTURED]
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
    parts = (part for decided, part in OUTCOMES_BY_DECISION.items() if decided in _decidable_actors(method))
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
    """List the methods that a shop has enabled, in their usual order; empty if all are enabled."""
    chosen = project.settings.payment_methods
    return [] if set(chosen) == set(NAMES) else [name for name in NAMES if name in chosen]


Cells = Mapping[Met, CaseMet]
"""Met cells, each with the ids of orders or the names of tests."""


class CoverageGroup(NamedTuple):
    """A row of the matrix."""

    group: str
    title: str
    cells: Mapping[str, CaseMet]  # by outcome; without places if never met

    @property
    def met(self) -> int:
        """The number of cells that the shop handled correctly."""
        return sum(bool(cell.right) for cell in self.cells.values())

    @property
    def missing(self) -> list[str]:
        """The outcomes that never occurred."""
        return [name for name, cell in self.cells.items() if not cell.right and not cell.wrong]

    @property
    def wrong(self) -> list[str]:
        """The outcomes that the shop only handled wrongly."""
        return [name for name, cell in self.cells.items() if cell.wrong and not cell.right]


class Matrix(NamedTuple):
    """The matrix of a suite, or of a project."""

    methods: list[CoverageGroup]
    others: list[CoverageGroup]
    is_chosen: bool  # whether the rows are the enabled methods, rather than the used ones

    @property
    def percent(self) -> float:
        """The percentage of the methods' outcomes that the shop handled correctly."""
        cells = sum(len(row.cells) for row in self.methods)
        return 100 * sum(row.met for row in self.methods) / cells if cells else 0.0


def build_matrix(met: Cells, enabled: Iterable[str]) -> Matrix:
    """Build the matrix for the enabled methods, or else for the used methods."""
    used = {one.subject for one in met if one.group == METHOD}
    chosen = set(enabled)
    methods = [_method(name, met) for name in NAMES if name in (chosen or used)]
    return Matrix(methods, [row for row in _others(met) if row.cells], bool(chosen))


def _method(name: str, met: Cells) -> CoverageGroup:
    return CoverageGroup(
        METHOD,
        name,
        {outcome: met.get(Met(METHOD, name, outcome), NEVER) for outcome in possible_outcomes(name)},
    )


def _others(met: Cells) -> list[CoverageGroup]:
    webhooks = {
        outcome: met.get(Met(WEBHOOK, outcome, ""), NEVER)
        for outcome in (DELIVERED, *webhook_coverage_checks())
    }
    refusals = {rule: met.get(Met(REFUSAL, rule, ""), NEVER) for rule in refusal_rules()}
    rules = {f"{one.subject}, {one.what}": met[one] for one in sorted(met) if one.group == RULE}
    return [
        CoverageGroup(WEBHOOK, "webhooks", webhooks),
        CoverageGroup(REFUSAL, "refusals", refusals),
        CoverageGroup(RULE, "scenario rules", rules),
    ]


def met_of(group: str, title: str, what: str) -> Met:
    """Return the cell of an outcome in a row."""
    if group == METHOD:
        return Met(METHOD, title, what)
    scenario, _, rule = what.partition(", ")
    return Met(group, scenario, rule)


def coverage(project: Project, findings: Iterable[Finding]) -> Matrix:
    """Build the matrix of a project, judged by the findings of its review."""
    return build_matrix(met_by(project, findings), enabled_methods(project))
