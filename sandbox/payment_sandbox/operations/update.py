"""Updates to orders."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from payment_sandbox.forms.order_fields import SENT_FIELDS
from payment_sandbox.operations.checks import check_order
from payment_sandbox.operations.create_order import order_lines_of
from payment_sandbox.orders.order import Order, reduce_customer
from payment_sandbox.orders.refusals import Invalid, OrderNotUpdatable, Violation
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.epoch import IfMatch
from payment_sandbox.projects.project import Project

ALWAYS_UPDATABLE_KEYS: Final = tuple(field.name for field in SENT_FIELDS if field.changes)
SUM_KEYS: Final = frozenset({"amount", "order_lines"})
PAYABILITY_KEYS: Final = SUM_KEYS | {"customer"}


def update(
    project: Project,
    order_id: str,
    data: Mapping[str, Any],
    form_violations: Sequence[Violation],
    if_match: IfMatch | None,
) -> Order:
    """Change text, addresses and customer; until the customer acts, also amount and lines (SET-51, SET-52).

    Raises:
        Invalid: the data is invalid; the error lists all violations, and nothing changes.
        OrderNotUpdatable: the customer has acted, so that amount and order_lines are final.
    """
    with project.edit() as edit:
        order = edit.order_if_match(order_id, if_match)
        wrong = {violation.path.replace("[", ".").partition(".")[0] for violation in form_violations}
        usable = {key: value for key, value in data.items() if key not in wrong}
        changes = _find_changes(order, usable, reduced_customer=edit.settings.reduced_customer)
        violations = [*form_violations, *_check_payable(edit, order, changes, form_violations)]
        if violations:
            raise Invalid(violations)
        if not changes.keys().isdisjoint(SUM_KEYS):
            _refuse_after_actions(order)
        _apply_changes(order, changes)
    return project.find_order(order_id)


def _apply_changes(order: Order, changes: Mapping[str, Any]) -> None:
    order.amount_cents = changes.get("amount", order.amount_cents)
    order.order_lines = changes.get("order_lines", order.order_lines)
    texts = {name: value for name, value in changes.items() if name not in SUM_KEYS}
    order.sent = {**order.sent, **texts} if texts else order.sent
    for attempt in order.transactions:
        attempt.amount_cents = order.amount_cents if attempt.is_open else attempt.amount_cents


def _find_changes(order: Order, data: Mapping[str, Any], *, reduced_customer: bool) -> dict[str, Any]:
    """Return the values that differ from the current order."""
    now = {**order.sent, "amount": order.amount_cents, "order_lines": order.order_lines}
    requested = dict(data)
    if "order_lines" in data:
        requested["order_lines"] = order_lines_of(data["order_lines"])
    if (
        reduced_customer
        and order.customer is not None
        and requested.get("customer") == reduce_customer(order.customer)
    ):
        del requested["customer"]  # the reduced customer of a response; the hidden fields remain unchanged
    return {name: value for name, value in requested.items() if value != now.get(name)}


def _check_payable(
    edit: Edit, order: Order, changes: Mapping[str, Any], violations: Sequence[Violation]
) -> list[Violation]:
    """Check whether the changed order is payable with its method."""
    attempt = order.last_transaction
    if order.is_refund or changes.keys().isdisjoint(PAYABILITY_KEYS):
        return []
    data: dict[str, Any] = {
        "amount": changes.get("amount", order.amount_cents),
        "order_lines": changes.get("order_lines", order.order_lines),
        "customer": changes.get("customer", order.customer),
    }
    if order.payment_methods is not None and attempt is None:
        data["payment_methods"] = order.payment_methods
    if attempt is not None and attempt.is_open:
        details = {**attempt.asked, "cvc": ""}  # sent at creation, and not stored
        data["transactions"] = [{"payment_method": attempt.payment_method, "payment_method_details": details}]
    return check_order(data, violations, edit.settings, edit.terms)


def is_sum_open(order: Order) -> bool:
    """Whether amount and lines can still change (SET-52)."""
    return order.is_open and not order.is_refund and not order.has_customer_acted


def _refuse_after_actions(order: Order) -> None:
    if not is_sum_open(order):
        raise OrderNotUpdatable(
            f"order {order.id} is {order.status} and its customer has acted or its money is in transit: "
            "amount and order_lines can no longer change",
            list(ALWAYS_UPDATABLE_KEYS),
        )
