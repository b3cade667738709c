"""QR requests, and orders created by scans."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import BANK_QR_METHOD, behaviour_of
from payment_sandbox.methods.common import Issuer
from payment_sandbox.operations.apply_steps import apply_steps
from payment_sandbox.operations.attempts import begin_attempt, unavailable_reason
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.amounts import CURRENCY, Cents
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.journal import SCAN, VIA_CONTROL
from payment_sandbox.projects.project import Project

SIZE_PIXELS_DEFAULT: Final = 200
ORDER_FIELDS: Final = ("description", "merchant_order_id", "return_url", "webhook_url")
EXPIRATION_DEFAULT: Final = Period.parse("P1Y")


def create_qr_request(
    project: Project, data: Mapping[str, Any], form_violations: Sequence[Violation] = ()
) -> QrRequest:
    """Create a QR request (QR-01 to QR-26).

    Raises:
        Invalid: lists all violations, including ``form_violations`` from the form.
    """
    with project.edit() as edit:
        violations = [*form_violations, *_check_amounts(data, form_violations)]
        expires_at = data.get("expiration") or EXPIRATION_DEFAULT.after(edit.now)
        if expires_at <= edit.now:
            violations.append(Violation("expiration", "must be in the future"))
        if violations:
            raise Invalid(violations)
        request = QrRequest(
            id=edit.ids.uuid("qr"),
            created=edit.now,
            expires_at=expires_at,
            currency=data.get("currency", CURRENCY),
            size_pixels=data.get("size", SIZE_PIXELS_DEFAULT),
            one_off=data.get("one_off", True),
            amount_changeable=data.get("amount_changeable", False),
            amount_cents=data.get("amount"),
            amount_min_cents=data.get("amount_min"),
            amount_max_cents=data.get("amount_max"),
            description=data.get("description"),
            merchant_order_id=data.get("merchant_order_id"),
            return_url=data.get("return_url"),
            webhook_url=data.get("webhook_url"),
        )
        edit.store_qr_request(request)
    return request


def _check_amounts(data: Mapping[str, Any], form_violations: Sequence[Violation]) -> list[Violation]:
    if data.get("amount_changeable", False):
        return list(_check_bounds(data.get("amount"), data.get("amount_min"), data.get("amount_max")))
    violations = [
        Violation(key, "requires amount_changeable to be true")
        for key in ("amount_min", "amount_max")
        if key in data
    ]
    if "amount" not in data and all(violation.path != "amount" for violation in form_violations):
        violations.append(Violation("amount", "is required when amount_changeable is false"))
    return violations


def _check_bounds(amount: Cents | None, low: Cents | None, high: Cents | None) -> Iterator[Violation]:
    pairs = (
        ("amount_max", amount, high, 1, f"must be larger than amount, {amount}"),
        ("amount_min", low, amount, 1, f"must be smaller than amount, {amount}"),
        ("amount_min", low, high, 0, f"must not be larger than amount_max, {high}"),
    )
    for path, smaller, larger, distance, problem in pairs:
        if smaller is not None and larger is not None and smaller + distance > larger:
            yield Violation(path, problem)


def scan(
    project: Project,
    qr_id: str,
    amount_cents: Cents | None,
    issuer_id: str | None,
    form_id: str | None = None,
    via: str = VIA_CONTROL,
) -> Order:
    """Scan a code: create an order with one attempt at the payer's bank, which starts processing at once.

    A page identifies its form by ``form_id``; submitting the same form twice returns the same order.

    Raises:
        Unknown: the request does not exist.
        QrExpired, QrUsed, QrAmountRefused: the request does not allow the scan.
        Invalid: the issuer is not in the list, or the merchant does not have the method.
    """
    _refuse_unknown_issuer(issuer_id, project.settings.banks)
    with project.edit() as edit:
        existing = edit.epoch.scan_forms.get(form_id) if form_id is not None else None
        if existing is not None:
            return edit.epoch.find_order(existing)
        request = edit.qr_request(qr_id)
        unavailable = unavailable_reason(edit.settings, BANK_QR_METHOD)
        if unavailable is not None:
            raise Invalid([Violation("payment_method", unavailable.reason)])
        request, settled_cents = request.count_scan(amount_cents, now=edit.now)
        edit.store_qr_request(request)
        order = edit.add(_build_order(edit, request, settled_cents))
        action = Action(CUSTOMER, SCAN, amount_cents=amount_cents, issuer_id=issuer_id)
        edit.record_action(action, via, order.id, bankqr_id=qr_id)
        _begin_attempt(edit, order, issuer_id or edit.settings.banks[0].id)
        if form_id is not None:
            edit.record_scan_form(form_id, order.id)
    return order


def _begin_attempt(edit: Edit, order: Order, issuer_id: str) -> None:
    """Start the attempt at the payer's bank, and mark its page as visited."""
    details = {"issuer_id": issuer_id}
    attempt = begin_attempt(
        edit, order, {"payment_method": BANK_QR_METHOD, "payment_method_details": details}
    )
    apply_steps(edit, order, attempt, behaviour_of(attempt).visit(attempt, edit.terms))
    attempt.visited = True


def _refuse_unknown_issuer(issuer_id: str | None, banks: Sequence[Issuer]) -> None:
    known = [bank.id for bank in banks]
    if issuer_id is not None and issuer_id not in known:
        raise Invalid([Violation("issuer_id", "is not in the issuers list", known)])


def _build_order(edit: Edit, request: QrRequest, amount_cents: Cents) -> Order:
    return Order(
        id=edit.ids.uuid("order"),
        amount_cents=amount_cents,
        currency=request.currency,
        created=edit.now,
        modified=edit.now,
        client={"user_agent": "bank app"},
        is_test=edit.settings.is_test,
        sent={name: getattr(request, name) for name in ORDER_FIELDS if getattr(request, name) is not None},
        bankqr_id=request.id,
    )
