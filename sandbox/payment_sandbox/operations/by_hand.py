"""Manual actions by a merchant in the service's back office: test orders, captures, voids and refunds."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from payment_sandbox.operations.authorizations import apply_to_ledger, capture_amount, void_amount
from payment_sandbox.operations.cancel import cancel
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.refund import refund
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.caller import with_cause
from payment_sandbox.projects.journal import MERCHANT_ACTOR, VIA_CONTROL, PerformedAction
from payment_sandbox.projects.project import Project

MERCHANT_ACTIONS: Final = ("capture", "void", "refund", "cancel")


def create_by_hand(project: Project, data: Mapping[str, Any]) -> Order:
    """Create an order from its parsed form."""
    return _record(project, "create", {}, lambda: create_order(project, data))


def act_as_merchant(
    project: Project, order_id: str, action: str, amount_cents: Cents | None, via: str = VIA_CONTROL
) -> Order:
    """Perform a merchant's action on an order; the journal records it as an action, not as a request.

    Raises:
        Invalid: the action is unknown, or needs an amount.
        Unknown: the order does not exist.
        Refusal: the order's state does not allow the action.
    """
    if action not in MERCHANT_ACTIONS:
        raise Invalid(
            [Violation("action", f"must be one of: {', '.join(MERCHANT_ACTIONS)}", list(MERCHANT_ACTIONS))]
        )
    details = {"amount_cents": amount_cents} if amount_cents is not None else {}
    return _record(project, action, details, lambda: _act(project, order_id, action, amount_cents), via)


def _record(
    project: Project,
    action: str,
    details: Mapping[str, Any],
    run: Callable[[], Order],
    via: str = VIA_CONTROL,
) -> Order:
    """Run an operation with an action as its cause; record the action on success."""
    journal, real_at = project.epoch.journal, project.services.real.wall_now()
    action_id = journal.next_id("action")
    with with_cause(action_id):
        order = run()
    masked = project.masking.mask_record(details)
    performed = PerformedAction(
        action_id, project.now(), real_at, MERCHANT_ACTOR, action, via, order.id, None, masked
    )
    if project.epoch.journal is journal:  # a reset in the meantime has discarded the order
        journal.add([performed])
    return order


def _act(project: Project, order_id: str, action: str, amount_cents: Cents | None) -> Order:
    if action == "cancel":
        return cancel(project, order_id, None)
    if action == "refund":
        data = {"amount": amount_cents} if amount_cents is not None else {}
        refund(project, order_id, data, None)
        return project.find_order(order_id)
    if amount_cents is None:
        raise Invalid([Violation("amount", "is required")])
    attempt = project.find_order(order_id).last_transaction
    ledger_step = capture_amount if action == "capture" else void_amount
    step = ledger_step(amount_cents, None)
    return apply_to_ledger(project, order_id, attempt.id if attempt is not None else "", step, None)[0]
