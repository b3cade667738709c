"""Create orders, with one attempt or with a hosted payment page."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.attempts import begin_attempt
from payment_sandbox.operations.checks import check_order
from payment_sandbox.orders.commands import ExpirePage
from payment_sandbox.orders.lines import ADDITIONAL_KEYS, OrderLine
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.transaction import NO_DATA
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.project import Project

HOSTED_PAGE_PERIOD: Final = "P1D"  # SET-69
INTERPRETED_KEYS: Final = frozenset(
    {"amount", "currency", "client", "order_lines", "payment_methods", "transactions"}
)
"""The keys that the sandbox interprets; all others are stored unchanged."""


def create_order(
    project: Project, data: Mapping[str, Any], form_violations: Sequence[Violation] = ()
) -> Order:
    """Create an order from its parsed form.

    The violations found by the form, ``form_violations``, are reported together with further violations.

    Raises:
        Invalid: lists all violations; nothing is created.
        RecurringSeriesExpired: the vault token's series is over a year old.
    """
    with project.edit() as edit:
        violations = [*form_violations, *check_order(data, form_violations, edit.settings, edit.terms)]
        if violations:
            raise Invalid(violations)
        order = edit.add(_build_order(edit, data))
        if data.get("transactions"):
            begin_attempt(edit, order, data["transactions"][0])
        else:
            _open_hosted_page(edit, order)
    return order


def _build_order(edit: Edit, data: Mapping[str, Any]) -> Order:
    methods = data.get("payment_methods")
    return Order(
        id=edit.ids.uuid("order"),
        amount_cents=data["amount"],
        currency=data["currency"],
        created=edit.now,
        modified=edit.now,
        client=data["client"],
        is_test=edit.settings.is_test,
        order_lines=order_lines_of(data["order_lines"]) if "order_lines" in data else (),
        payment_methods=tuple(methods) if methods is not None else None,
        sent={name: value for name, value in data.items() if name not in INTERPRETED_KEYS},
    )


def order_lines_of(data: Sequence[Mapping[str, Any]]) -> tuple[OrderLine, ...]:
    """Convert validated data to order lines."""
    return tuple(
        OrderLine(
            amount_cents=line["amount"],
            additional={key: line[key] for key in ADDITIONAL_KEYS if key in line} or NO_DATA,
            **{key: value for key, value in line.items() if key not in ("amount", *ADDITIONAL_KEYS)},
        )
        for line in data
    )


def _open_hosted_page(edit: Edit, order: Order) -> None:
    order.is_hosted = True
    order.expires_at = Period.parse(order.expiration_period or HOSTED_PAGE_PERIOD).after(edit.now)
    edit.schedule(order.expires_at, ExpirePage(order.id))
