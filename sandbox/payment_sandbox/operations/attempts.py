"""The start of an attempt: the usable methods of an order, and the scenario's decision."""

from collections.abc import Mapping, Sequence
from sys import intern
from typing import Any, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import Method
from payment_sandbox.operations.apply_steps import apply_steps
from payment_sandbox.orders.commands import ExpireAttempt
from payment_sandbox.orders.order import Order, missing_personal_data
from payment_sandbox.orders.statuses import TransactionStatus
from payment_sandbox.orders.transaction import NO_DATA, Transaction
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.settings import Settings
from payment_sandbox.scenarios.model import Subject


class UnusableMethod(NamedTuple):
    """The reason why a method cannot be used, and the id of the rule."""

    reason: str
    rule: str


def unavailable_reason(settings: Settings, name: str) -> UnusableMethod | None:
    """Return the reason why this merchant cannot use a method; None if the method is available."""
    identifier = settings.method(name)
    if identifier is None:
        return UnusableMethod(f"{name!r} is not a payment method", "TRQ-02")
    if identifier not in settings.payment_methods:
        return UnusableMethod(f"{name} is not enabled for this merchant", "CTL-03")
    if settings.is_test and not METHODS_BY_NAME[identifier].capabilities.testable:
        return UnusableMethod(f"{name} cannot be used in test mode", "SET-61")
    return None


def is_available(settings: Settings, name: str) -> bool:
    """Whether this merchant can use a method and has its required feature."""
    return unavailable_reason(settings, name) is None and METHODS_BY_NAME[
        settings.method(name) or ""
    ].capabilities.needs_feature in (None, *settings.features)


def available_methods(settings: Settings) -> list[str]:
    """Return the identifiers and aliases of the available methods."""
    return [name for name in settings.method_names if is_available(settings, name)]


def is_usable(
    settings: Settings, name: str, *, has_lines: bool, has_customer: bool, has_personal_data: bool
) -> bool:
    """Whether this merchant can use a method, given what the order has."""
    if not is_available(settings, name):
        return False
    needs = METHODS_BY_NAME[settings.method(name) or ""].capabilities
    if needs.screens and settings.personal_data == "required" and not has_personal_data:
        return False
    return (has_lines or not needs.needs_order_lines) and (has_customer or not needs.needs_customer)


def offered_methods(settings: Settings, order: Order) -> list[str]:
    """List the methods of the hosted page: enabled, testable, listed and usable (GEN-03, GEN-04)."""
    names = (
        list(order.payment_methods) if order.payment_methods is not None else list(settings.payment_methods)
    )
    return [
        name
        for name in dict.fromkeys(names)
        if is_usable(
            settings,
            name,
            has_lines=bool(order.order_lines),
            has_customer=bool(order.customer),
            has_personal_data=not missing_personal_data(order.customer),
        )
    ]


def begin_attempt(edit: Edit, order: Order, requested: Mapping[str, Any]) -> Transaction:
    """Add an attempt to an order and start it.

    ``requested`` is a checked transaction request: ``payment_method`` and, if sent, ``expiration_period``,
    ``capture_mode`` and ``payment_method_details``.
    """
    name = requested["payment_method"]
    identifier = edit.settings.method(name)
    assert identifier is not None, "the request must be checked"
    capabilities = METHODS_BY_NAME[identifier].capabilities
    expiration_period = requested.get("expiration_period", capabilities.default_expiration)
    sent = requested.get("payment_method_details", NO_DATA)
    attempt = Transaction(
        id=edit.ids.uuid("transaction"),
        method=identifier,
        payment_method=intern(name),  # one text for all orders
        amount_cents=order.amount_cents,
        created=edit.now,
        modified=edit.now,
        expiration_period=expiration_period,
        expires_at=Period.parse(expiration_period).after(edit.now),
        brand=capabilities.brand,
        capture_mode=requested.get("capture_mode", capabilities.default_capture_mode),
        asked={
            field.name: sent[field.name]  # a CVC is never stored
            for field in capabilities.details
            if field.name in sent and field.name != "cvc"
        }
        or NO_DATA,
        details=NO_DATA,
        plan=NO_DATA,
    )
    order.transactions = (*order.transactions, attempt)
    order.last_transaction_added = edit.now
    decide_outcome(edit, order, attempt, METHODS_BY_NAME[identifier], [identifier, name])
    # An attempt accepted by the processor does not expire, because it needs no action by the customer.
    if attempt.is_open and attempt.status != TransactionStatus.PROCESSING:
        edit.schedule(attempt.expires_at, ExpireAttempt(order.id, attempt.id))
    return attempt


def decide_outcome(
    edit: Edit, order: Order, attempt: Transaction, behaviour: Method, names: Sequence[str]
) -> None:
    """Let the scenario decide an attempt's outcome, then start its method, or the refund."""
    edit.record_event(attempt)
    subject = Subject(
        methods=frozenset(names),
        amount_cents=attempt.amount_cents,
        customer=order.sent.get("customer") or {},
        merchant_order_id=order.sent.get("merchant_order_id"),
        attempt=len(order.transactions),
        is_refund=order.refund_of_order_id is not None,
        outcome_keys=behaviour.outcome_keys(attempt),
        screenings=behaviour.capabilities.screenings,
    )
    attempt.plan = edit.decide(attempt.id, subject) or NO_DATA
    apply_steps(edit, order, attempt, behaviour.begin(attempt, edit.terms))
