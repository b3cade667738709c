"""The review: mistakes in an integration, detected in its requests and webhooks."""

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.operations.review.creation_checks import (
    find_blind_retries,
    find_duplicate_orders,
    find_ignored_keys,
    find_late_captures,
    find_warnings,
    is_creation,
    is_creation_request,
)
from payment_sandbox.operations.review.evidence import (
    HINT,
    KINDS,
    Finding,
    FindingGroup,
    ReviewedHistory,
    cents_at_risk,
    group_findings,
    is_answer_lost,
    start_of,
)
from payment_sandbox.operations.review.lessons import FAILING_REFUNDS, NOTICE_PAYMENTS, Lesson, lesson_of
from payment_sandbox.operations.review.money_checks import (
    VAULT_TOKEN,
    calls_during,
    charges_during,
    find_blind_repeats,
    find_client_resends,
    find_concurrent_moves,
    find_moves_per_webhook,
    find_refused_repeats,
    find_unnoticed_payments,
    find_unrefunded_cancellations,
    find_unreturned_surplus,
)
from payment_sandbox.operations.review.payment_checks import (
    find_charges_after_decline,
    find_lapsed_authorizations,
    find_refused_calls,
    lapsed_authorizations,
    series_of,
)
from payment_sandbox.operations.review.setup_checks import (
    count_unsent_changes,
    find_missing_slashes,
    find_missing_webhook_url,
    find_mixed_schemes,
    find_unmatched_rules,
    unmatched_rules,
)
from payment_sandbox.operations.review.webhook_checks import (
    find_failures_after_answers,
    find_polling,
    find_trusted_returns,
    find_unanswered_webhooks,
    find_unread_webhooks,
)
from payment_sandbox.orders.amounts import convert_cents, euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import LoggedRequest, ReachedStatus
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.variation_catalogue import LAPSE, UNSHIPPED

__all__ = [
    "HINT",
    "KINDS",
    "VAULT_TOKEN",
    "Finding",
    "FindingGroup",
    "calls_during",
    "cents_at_risk",
    "describe_mistakes",
    "group_findings",
    "is_answer_lost",
    "listed_id",
    "review",
    "review_order",
    "start_of",
]

TEXT_MAX: Final = 2000


def describe_mistakes(findings: Iterable[Finding], ignore: Collection[str] = ()) -> str:
    """Return all open mistakes as text, except for those of ignored rules; empty if there are none."""
    mistakes = [each for each in findings if each.is_open and each.rule not in ignore]
    if not mistakes:
        return ""
    count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    listed = "\n\n".join(map(str, mistakes))
    return f"the review found {count} in the integration:\n\n{listed}"


UNNOTICED_AUTHORIZATION: Final = "a customer has authorized the payment and waits for goods"
UNNOTICED: Final = "a later payment goes unnoticed"


def review(epoch: Epoch) -> list[Finding]:
    """Review a project's history, largest amounts first; a correct integration gets no findings."""
    requests = _evidence(epoch)
    deliveries = epoch.store.deliveries()
    orders = _index_orders(epoch, requests, deliveries)
    history = ReviewedHistory(
        requests,
        epoch.journal.returns(),
        deliveries,
        orders,
        epoch.journal.of(ReachedStatus),
        epoch.now(),
        epoch.state.settings.webhook_timing == BEFORE_RESPONSE,
        count_unsent_changes(epoch),
        unmatched_rules(epoch),
        epoch.state.scenario.name,
        lapsed_authorizations(epoch, orders),
    )
    findings = _run_checks(epoch, CHECKS, history)
    return sorted(findings, key=lambda finding: (not finding.is_open, -finding.amount))


def listed_id(epoch: Epoch, order_id: str) -> str:
    """Return the id under which an order is listed; a refund belongs to its order."""
    order = epoch.store.order(order_id)
    return order_id if order is None else order.refund_of_order_id or order.id


def review_order(epoch: Epoch, order: Order) -> list[Finding]:
    """Review the history of one order and its refunds."""
    order_ids = (order.id, *(refund.refund_id for refund in order.refunds))
    deliveries = list(chain.from_iterable(map(epoch.store.deliveries_of, order_ids)))
    all_requests = _evidence(epoch)
    own = _evidence(epoch, order_ids)
    related = charges_during(deliveries, all_requests) | series_of(own, all_requests)
    also_own = {entry.id for entry in own} | related
    requests = [entry for entry in all_requests if entry.id in also_own] if related else own
    orders = _index_orders(epoch, requests, deliveries)
    history = ReviewedHistory(
        requests,
        epoch.journal.returns(order_ids),
        deliveries,
        orders,
        epoch.journal.of(ReachedStatus, order_ids),
        epoch.now(),
        epoch.state.settings.webhook_timing == BEFORE_RESPONSE,
        lapsed=lapsed_authorizations(epoch, orders),
    )
    findings = [each for each in _run_checks(epoch, CHECKS, history) if each.order_id in (None, *order_ids)]
    basket = _run_checks(epoch, CROSS_ORDER_CHECKS, _collect_basket(epoch, order, own, all_requests))
    return [*(finding._replace(order_id=order.id) for finding in basket), *findings]


def _index_orders(
    epoch: Epoch, requests: Iterable[LoggedRequest], deliveries: Iterable[Delivery] = ()
) -> dict[str, Order]:
    """Return the orders named in requests and webhooks, by id."""
    named = {entry.order_id for entry in requests} | {entry.order_id for entry in deliveries}
    orders = (epoch.store.order(order_id) for order_id in named if order_id)
    return {order.id: order for order in orders if order is not None}


def _collect_basket(
    epoch: Epoch, order: Order, requests: Iterable[LoggedRequest], all_requests: Iterable[LoggedRequest]
) -> ReviewedHistory:
    """Collect the create calls with the same merchant number or body, and the history of their orders."""
    bodies = {entry.request for entry in filter(is_creation, requests)}
    number = json.dumps(order.merchant_order_id).encode() if order.merchant_order_id else None

    def is_same_basket(entry: LoggedRequest) -> bool:
        return entry.request in bodies or (number is not None and number in entry.request)

    creations = list(filter(is_creation_request, filter(is_same_basket, all_requests)))
    orders = _index_orders(epoch, creations)
    cancelled = [entry for entry in _evidence(epoch, orders) if entry.method == "DELETE"]
    reached = epoch.journal.of(ReachedStatus, orders)
    return ReviewedHistory([*creations, *cancelled], (), (), orders, reached, epoch.now())


def _evidence(epoch: Epoch, orders: Iterable[str] | None = None) -> list[LoggedRequest]:
    """Return the calls, all or those about some orders, that show what the shop does or knows."""
    return [entry for entry in epoch.journal.of(LoggedRequest, orders) if entry.is_evidence]


def _run_checks(epoch: Epoch, checks: Iterable["Check"], history: ReviewedHistory) -> list[Finding]:
    by_check = {check: list(check(history)) for check in checks}
    refusal_findings = chain.from_iterable(
        by_check.get(check, ())
        for check in (find_refused_repeats, find_unrefunded_cancellations, find_client_resends)
    )
    hints = find_refused_calls(history, refusal_findings) if find_refused_repeats in by_check else ()
    return [_add_lesson(epoch, finding) for finding in chain(*by_check.values(), hints)]


def _add_lesson(epoch: Epoch, finding: Finding) -> Finding:
    """Add the risk and the documentation page to a finding.

    Strings from the shop are shortened, and escaped so that they cannot break a line.
    """

    def sanitize(text: str) -> str:
        return make_printable(text)[:TEXT_MAX]

    finding = finding._replace(
        problem=sanitize(convert_cents(finding.problem)),
        advice=sanitize(finding.advice),
        order_id=sanitize(finding.order_id) if finding.order_id is not None else None,
        requests=tuple(map(sanitize, finding.requests)),
    )
    if finding.kind == HINT:
        return finding
    order = epoch.store.order(finding.order_id or "")
    lesson = _lesson_for(finding, order)
    finding, risk = _state_money(order, finding, finding.risk or (lesson.risk if lesson is not None else ""))
    page = finding.page or (lesson.path if lesson is not None else "")
    amount = f"{euros(finding.amount)}: " if finding.amount else ""
    return finding._replace(risk=f"{amount}{risk}" if risk else "", page=page)


def _lesson_for(finding: Finding, order: Order | None) -> Lesson | None:
    """Return the lesson about a finding; a refund that goes unnoticed is no payment that does."""
    lesson = lesson_of(finding.rule)
    is_refund = order is not None and order.is_refund
    return FAILING_REFUNDS if is_refund and lesson == NOTICE_PAYMENTS else lesson


def _state_money(order: Order | None, finding: Finding, risk: str) -> tuple[Finding, str]:
    """Return a finding and its risk, limited to the money that the ledger of the order shows."""
    if order is None:
        return finding, risk
    ledger = ledger_of(order)
    if risk == UNSHIPPED:
        if ledger.refunded or (ledger.authorized and ledger.received):  # the shop knew, and moved the money
            return finding._replace(amount=0), UNNOTICED
        paid = ledger.received
        unpaid = UNNOTICED_AUTHORIZATION if ledger.reserved else UNNOTICED
        return finding._replace(amount=paid or ledger.reserved), risk if paid else unpaid
    if risk == LAPSE:
        return finding._replace(amount=ledger.lapsed), risk
    return finding, risk


Check = Callable[[ReviewedHistory], Iterable[Finding]]
CHECKS: Final[Sequence[Check]] = (
    find_unread_webhooks,
    find_trusted_returns,
    find_unanswered_webhooks,
    find_failures_after_answers,
    find_duplicate_orders,
    find_late_captures,
    find_blind_retries,
    find_client_resends,
    find_moves_per_webhook,
    find_blind_repeats,
    find_concurrent_moves,
    find_refused_repeats,
    find_unrefunded_cancellations,
    find_unreturned_surplus,
    find_unnoticed_payments,
    find_polling,
    find_ignored_keys,
    find_warnings,
    find_missing_slashes,
    find_missing_webhook_url,
    find_mixed_schemes,
    find_unmatched_rules,
    find_lapsed_authorizations,
    find_charges_after_decline,
)
"""The checks in a review; their findings precede the hints about refused requests."""
CROSS_ORDER_CHECKS: Final[Sequence[Check]] = (find_duplicate_orders, find_blind_retries, find_client_resends)
"""The checks that compare orders."""
