"""The merchant's view of the model; it omits fields that the specification leaves open."""

from typing import Any

from tests.model.specification.money import line_authorization, paid_lines
from tests.model.specification.records import Attempt, Order, Refund, Shop

Json = dict[str, Any]


def read_order(shop: Shop, number: int) -> Json:
    """Return GET /v1/orders/<order_id>/ with both extra blocks (END-03 to END-06, ORD-17, SET-26)."""
    order = shop.orders[number]
    view: Json = {
        "amount": order.amount,
        "currency": "EUR",
        "status": order.status,
        "flags": flags(shop, order),
        "transactions": [read_attempt(shop, order, attempt) for attempt in order.attempts],
        "webhooks": read_webhooks(order, url=order.webhook_url),
        "refunds": [  # readable as orders (SET-48)
            {"amount": refund.amount, "status": refund.status, "webhooks": read_webhooks(refund)}
            for refund in order.refunds
        ],
        "amount_details": amount_details(order),
        "order_line_details": line_details(order),
    }
    return view | optional_fields(order)


def optional_fields(order: Order) -> Json:
    """Return the fields that only exist in some states (ORD-06, ORD-20, ORD-24, ORD-25, SET-24, SET-28)."""
    view: Json = {}
    if not order.from_code or order.description:  # unspecified for a QR order
        view["description"] = order.description or None
    if order.is_unpaid or order.status in {"new", "processing", "completed"}:
        view["completed"] = order.status == "completed"
    if order.status == "error":
        view["reason"] = True
    if order.is_hosted and order.is_active:
        view["order_url"] = True
    return view


def flags(shop: Shop, order: Order) -> Json:
    """Return each flag and whether it is set (SET-26); for a sale, has-captures is unspecified."""
    authorizations = [attempt.authorization for attempt in order.attempts if attempt.authorization]
    view: Json = {"is-test": shop.mode == "test", "from-bankqr": order.from_code, "is-refund": False}
    if authorizations or not order.received:
        view["has-captures"] = any(a.captured for a in authorizations)
        view["has-voids"] = any(a.voided for a in authorizations)
    if all(refund.status == "completed" for refund in order.refunds):
        view["has-refunds"] = bool(order.refunds)
    return view


def read_attempt(shop: Shop, order: Order, attempt: Attempt) -> Json:
    """Return the view of a transaction (TX-01 to TX-17, SET-27, SET-29)."""
    view: Json = {
        "payment_method": attempt.method,
        "amount": attempt.amount,
        "currency": "EUR",
        "credit_debit": "credit",  # TX-05
        "channel": "ecom",  # SET-29
        "balance": "test" if shop.mode == "test" else "internal",
        "expiration_period": attempt.period,  # TX-08, SET-20
    }
    if attempt.capture_mode:
        view["capture_mode"] = attempt.capture_mode  # CAP-01
    if not attempt.screening:
        view["status"] = attempt.status  # unspecified during a slow screening
    if attempt.is_unpaid or attempt.status in {"new", "processing", "pending", "completed"}:
        view["completed"] = attempt.status == "completed"  # TX-07
    if attempt.status == "error":
        view["reason"] = True  # SET-28
    return view | read_authorization(attempt) | read_card(attempt)


def read_authorization(attempt: Attempt) -> Json:
    """Return the capture flags of a transaction (SET-27, SET-42, CAP-02)."""
    authorization, view = attempt.authorization, Json()
    if authorization is None:
        return {"is_capturable": False} if attempt.capture_mode else {}
    if not authorization.is_delayed:
        view["is_capturable"] = bool(authorization.remaining) and not authorization.is_expired
    if not authorization.voided:
        view["is_fully_captured"] = authorization.remaining == 0
    return view


def read_card(attempt: Attempt) -> Json:
    """Return whether the payment page and the stored card exist (STA-02, SET-37, TX-13, CARD-20, CARD-21)."""
    if attempt.flow in {"one-click", "recurring"}:
        return {"payment_url": False, "first_authorised_transaction_id": True}
    is_waiting = attempt.facts.has_page and attempt.status == "new"
    view: Json = {"payment_url": True} if is_waiting else {}
    if attempt.flow.startswith("first"):
        view["vault_token"] = bool(attempt.captured or attempt.authorization)
    return view


def amount_details(order: Order) -> Json:
    """Return ``amount_details``, which add up to the amount; ``received`` tells of more (ADET-01, A45)."""
    captured = min(order.received, order.amount)
    voided = sum(attempt.authorization.voided for attempt in order.attempts if attempt.authorization)
    voided = min(voided, order.amount - captured)
    view = {"original": order.amount, "captured": captured, "voided": voided}
    view["remaining"] = order.amount - captured - voided
    return view | ({"received": order.received} if order.received > order.amount else {})


def line_details(order: Order) -> list[Json]:
    """Return ``order_line_details`` (LDET-01 to LDET-04).

    Numbers are strings, and entries of quantity 0 are omitted (contract).
    """
    authorization, lines = line_authorization(order), paid_lines(order)
    is_over = authorization is not None and authorization.is_expired
    authorized = (0,) * len(order.lines) if is_over else lines.unnamed
    parts = {"authorized": authorized, "captured": lines.captured, "voided": lines.voided}
    return [
        {
            "merchant_order_line_id": line.id,
            "amount": str(line.amount),
            "status": status,
            "quantity": str(count),
        }
        for status, quantities in parts.items()
        for line, count in zip(order.lines, quantities, strict=True)
        if count
    ]


def read_webhooks(owner: Order | Refund, **fields: Any) -> list[Json]:
    """Return webhooks as in GET /control/webhooks/ (HOOK-11, CTL-21)."""
    return [
        {"state": webhook.state, "attempts": webhook.attempts, "since": webhook.created_at, **fields}
        for webhook in owner.webhooks
    ]
