"""One history of each order, and the review: mistakes in an integration, detected in its log.

``history`` makes the entries of the history and says what they mean, and ``standing`` compares the service
with what the shop has read. The review is in this module; the checks are in modules of their own.

Other packages may import this package, ``books``, ``evidence``, ``history``, ``lessons``, ``standing`` and
``webhook_checks``.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from payment_sandbox.judge import call_checks, money_checks, setup_checks, webhook_checks
from payment_sandbox.judge.call_checks import Creation, Refusal
from payment_sandbox.judge.evidence import (
    HINT,
    KINDS,
    Finding,
    FindingGroup,
    ReviewedHistory,
    cents_at_risk,
    group_findings,
    start_of,
)
from payment_sandbox.judge.lessons import FAILING_REFUNDS, NOTICE_PAYMENTS, lesson_of
from payment_sandbox.judge.money_checks import Charge, DatedFinding
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.operations.redelivery import unsent_of
from payment_sandbox.orders.amounts import convert_cents, euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import LoggedRequest, number_of
from payment_sandbox.projects.order_logs import OrderLog, log_of, order_logs
from payment_sandbox.scenarios.risks import LAPSE, UNSHIPPED

__all__ = [
    "HINT",
    "KINDS",
    "Finding",
    "FindingGroup",
    "cents_at_risk",
    "describe_mistakes",
    "group_findings",
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


FindOrder = Callable[[str], Order | None]
Check = Callable[[ReviewedHistory], Iterable[Finding]]
ORDER_CHECKS: Final[Sequence[Check]] = (
    webhook_checks.find_unread_webhooks,
    webhook_checks.find_trusted_returns,
    webhook_checks.find_unanswered_webhooks,
    webhook_checks.find_failures_after_answers,
    call_checks.find_late_captures,
    money_checks.find_client_resends,
    money_checks.find_moves_per_webhook,
    money_checks.find_blind_repeats,
    money_checks.find_concurrent_moves,
    money_checks.find_refused_repeats,
    money_checks.find_unrefunded_cancellations,
    webhook_checks.find_polling,
    call_checks.find_warnings,
    setup_checks.find_mixed_schemes,
    money_checks.find_lapsed_authorizations,
)
"""The checks of one order with its refunds."""
EXPLAINING_CHECKS: Final[Sequence[Check]] = (
    money_checks.find_refused_repeats,
    money_checks.find_unrefunded_cancellations,
    money_checks.find_client_resends,
)
"""The checks whose findings explain refusals."""
DATED_CHECKS: Final = (money_checks.find_unreturned_surplus, money_checks.find_unnoticed_payments)
"""The checks of one order whose findings begin at a time."""
BASKET_CHECKS: Final = (
    call_checks.find_duplicate_orders,
    call_checks.find_blind_retries,
    money_checks.find_resent_creations,
)
"""The checks that compare the orders of a basket."""
CHARGE_CHECKS: Final[Sequence[Check]] = (
    money_checks.find_moves_per_webhook,
    money_checks.find_blind_repeats,
    money_checks.find_refused_repeats,
)
"""The checks of charges to stored cards, each of which is another order."""


class ReviewedOrder(NamedTuple):
    """What the history of an order with its refunds shows, or a call without an order."""

    findings: Sequence[Finding]
    dated: Sequence[DatedFinding]
    creations: Sequence[Creation]
    charges: Sequence[Charge]
    unusual: Sequence[LoggedRequest]
    """The calls with unknown keys, and the first one without a final slash."""
    refusals: Sequence[Refusal]
    unsent: int
    """The number of webhooks that were not sent because no address was set."""


def review_log(log: OrderLog) -> ReviewedOrder:
    """Review the log of one order and its refunds."""
    history = ReviewedHistory(log.orders, log.webhooks, log.records, log.webhooks_first)
    by_check = {check: list(check(history)) for check in ORDER_CHECKS}
    explained = _explained(chain.from_iterable(by_check[check] for check in EXPLAINING_CHECKS))
    dated = chain.from_iterable(check(history) for check in DATED_CHECKS)
    find = history.orders.get
    return ReviewedOrder(
        [_add_lesson(find, finding) for finding in chain(*by_check.values())],
        [each._replace(finding=_add_lesson(find, each.finding)) for each in dated],
        list(call_checks.creations_in(history)),
        list(money_checks.charges_in(history)),
        _unusual_calls(history.requests),
        [refusal for refusal in call_checks.refusals_in(history) if refusal.entry.id not in explained],
        sum(not each.url for each in log.derive(unsent_of)),
    )


def _unusual_calls(requests: Sequence[LoggedRequest]) -> list[LoggedRequest]:
    slashless = next((entry for entry in requests if not entry.path.endswith("/")), None)
    return [entry for entry in requests if entry.unknown or entry is slashless]


def _explained(findings: Iterable[Finding]) -> set[str]:
    return {id_ for finding in findings for id_ in finding.shown_by}


def review(epoch: Epoch) -> list[Finding]:
    """Review a project's history, largest amounts first; a correct integration gets no findings."""
    reviewed = [log.derive(review_log) for log in order_logs(epoch).values()]
    across = [*_compare_baskets(_baskets(reviewed)), *_review_charges(epoch, reviewed)]
    unsent = 0 if epoch.store.deliveries_dropped else sum(each.unsent for each in reviewed)
    setup = [*setup_checks.find_missing_webhook_url(epoch, unsent), *setup_checks.find_unmatched_rules(epoch)]
    findings = _collect_findings(epoch, reviewed, [*across, *setup])
    return sorted(findings, key=lambda finding: (not finding.is_open, -finding.amount))


def listed_id(epoch: Epoch, order_id: str) -> str:
    """Return the id under which an order is listed; a refund belongs to its order."""
    order = epoch.store.order(order_id)
    return order_id if order is None else order.refund_of_order_id or order.id


def review_order(epoch: Epoch, order: Order) -> list[Finding]:
    """Review the history of one order and its refunds."""
    own = log_of(epoch, order).derive(review_log)
    reviewed = [log.derive(review_log) for log in order_logs(epoch).values()]
    ids = {order.id, *(refund.refund_id for refund in order.refunds)}
    baskets = [basket for basket in _baskets(reviewed) if any(each.order.id in ids for each in basket)]
    in_baskets = [finding._replace(order_id=order.id) for finding in _compare_baskets(baskets)]
    charges = [finding for finding in _review_charges(epoch, reviewed) if finding.order_id in ids]
    findings = _collect_findings(epoch, [own], [*in_baskets, *charges])
    return [finding for finding in findings if finding.order_id in (None, *ids)]


def _collect_findings(
    epoch: Epoch, reviewed: Sequence[ReviewedOrder], across: Sequence[Finding]
) -> list[Finding]:
    """Collect the findings across orders, of each order, and about the calls of all of them."""
    find, now = epoch.store.order, epoch.now()
    findings = [_add_lesson(find, finding) for finding in across]
    findings += chain.from_iterable(each.findings for each in reviewed)
    dated = chain.from_iterable(each.dated for each in reviewed)
    findings += (each.finding for each in dated if each.since <= now)
    hints = _review_calls(find, reviewed, _explained(across))
    return [*findings, *(_add_lesson(find, finding) for finding in hints)]


def _review_calls(
    find: FindOrder, reviewed: Iterable[ReviewedOrder], explained: Container[str]
) -> Iterator[Finding]:
    """Report unknown keys, missing slashes and refusals, each kind once for all orders."""
    unusual = list(chain.from_iterable(each.unusual for each in reviewed))
    orders = {order.id: order for entry in unusual if (order := find(entry.order_id or ""))}
    calls = ReviewedHistory(orders, (), sorted(unusual, key=number_of))
    refusals = chain.from_iterable(each.refusals for each in reviewed)
    unexplained = [refusal for refusal in refusals if refusal.entry.id not in explained]
    unexplained.sort(key=lambda refusal: number_of(refusal.entry))
    return chain(
        call_checks.find_ignored_keys(calls),
        setup_checks.find_missing_slashes(calls),
        call_checks.find_refused_calls(unexplained),
    )


def _baskets(reviewed: Iterable[ReviewedOrder]) -> list[list[Creation]]:
    """Return the orders with the same number, or without a number with the same content."""
    baskets: dict[tuple[str, str], list[Creation]] = defaultdict(list)
    for creation in chain.from_iterable(each.creations for each in reviewed):
        baskets[creation.basket].append(creation)
    alike = [basket for basket in baskets.values() if len(basket) > 1]
    return [sorted(basket, key=lambda each: number_of(each.entry)) for basket in alike]


def _compare_baskets(baskets: Iterable[Sequence[Creation]]) -> Iterator[Finding]:
    return chain.from_iterable(check(basket) for basket in baskets for check in BASKET_CHECKS)


def _review_charges(epoch: Epoch, reviewed: Iterable[ReviewedOrder]) -> list[Finding]:
    """Compare the charges to stored cards, each of which belongs to another order."""
    charges = list(chain.from_iterable(each.charges for each in reviewed))
    charges.sort(key=lambda charge: number_of(charge.call.entry))
    times = Counter(charge.call.kind for charge in charges)
    repeated = [charge.call for charge in charges if times[charge.call.kind] > 1]
    if not repeated:
        return list(money_checks.find_charges_after_decline(charges))
    causing = money_checks.orders_in_progress(epoch.store.deliveries(), repeated)
    reads = [entry for entry in epoch.journal.of(LoggedRequest, causing) if entry.method == "GET"]
    webhooks = list(chain.from_iterable(map(epoch.store.deliveries_of, causing)))
    entries = sorted([*reads, *(call.entry for call in repeated)], key=number_of)
    history = ReviewedHistory({}, webhooks, entries, is_of_charges=True)
    return [
        *chain.from_iterable(check(history) for check in CHARGE_CHECKS),
        *money_checks.find_charges_after_decline(charges),
    ]


def _add_lesson(find: FindOrder, finding: Finding) -> Finding:
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
    order, lesson = find(finding.order_id or ""), lesson_of(finding.rule)
    if lesson == NOTICE_PAYMENTS and order is not None and order.is_refund:
        lesson = FAILING_REFUNDS  # no payment goes unnoticed
    risk, page = (lesson.risk, lesson.path) if lesson is not None else ("", "")
    finding, risk = _state_money(order, finding, finding.risk or risk)
    amount = f"{euros(finding.amount)}: " if finding.amount else ""
    return finding._replace(risk=f"{amount}{risk}" if risk else "", page=finding.page or page)


def _state_money(order: Order | None, finding: Finding, risk: str) -> tuple[Finding, str]:
    """Return a finding and its risk, limited to the money that the ledger of the order shows."""
    if order is None or risk not in (UNSHIPPED, LAPSE):
        return finding, risk
    ledger = ledger_of(order)
    if risk == LAPSE:
        return finding._replace(amount=ledger.lapsed), risk
    if ledger.refunded or (ledger.authorized and ledger.received):  # the shop knew, and moved the money
        return finding._replace(amount=0), UNNOTICED
    unpaid = UNNOTICED_AUTHORIZATION if ledger.reserved else UNNOTICED
    return finding._replace(amount=ledger.received or ledger.reserved), risk if ledger.received else unpaid
