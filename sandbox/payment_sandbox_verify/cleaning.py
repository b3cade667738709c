"""The clean-up of created orders: they are cancelled, voided or refunded."""

from typing import Any, Final

from payment_sandbox_verify.answer import CannotTell, NotVerified, ServiceAnswer
from payment_sandbox_verify.samples import LINES, MARKER, line_quantity, lines_worth
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.steps import ORDERS_PATH

NOT_FOUND: Final = 404
REFUNDED_OR_VOIDED: Final = "refunded, or voided"
FINAL_STATUSES: Final = ("cancelled", "expired", "error")
NOTHING_TO_REFUND: Final = "NothingToRefund"
REFUND_EXCEEDS_CAPTURED: Final = "RefundExceedsCaptured"
AUTHORIZATION_EXPIRED: Final = "AuthorizationExpired"


def clean_up(service: Service) -> dict[str, str]:
    """Cancel or refund all created orders; return what remains of each, or its problem, by order id."""
    remaining: dict[str, str] = {}
    service.is_interrupted = False
    for order_id in list(service.created_orders.orders):
        remainder = _clean_up_order(service, f"{ORDERS_PATH}{order_id}/")
        if remainder is not None:
            remaining[order_id] = remainder
        if remainder in (None, REFUNDED_OR_VOIDED):
            service.created_orders.remove(order_id)
    return remaining


def _clean_up_order(service: Service, path: str) -> str | None:
    """Cancel, void or refund an order; return what remains or the problem, or None if the order has ended.

    What the order shows afterwards counts, not the answers.
    """
    try:
        is_deleted = service.call("DELETE", path).is_success
        order = service.call("GET", f"{path}?fields[]=amount_details")
        if order.at("status") in FINAL_STATUSES or order.status == NOT_FOUND:
            return None
        if is_deleted:
            return f"its status is {order.at('status')!r} after a DELETE"
        return _return_money(service, order, path)
    except (CannotTell, NotVerified) as error:
        return str(error)


def _return_money(service: Service, order: ServiceAnswer, path: str) -> str:
    """Void what is reserved and refund what was captured; return what remains."""
    reserved, captured = _cents(order, "remaining"), _cents(order, "captured")
    void = {"description": MARKER, "amount": reserved}
    voids_path = f"{path}transactions/{order.at('transactions[-1].id')}/voids/amount/"
    voided = service.call("POST", voids_path, void) if reserved else order
    is_refunded = not captured or _refund_rest(service, path, captured)
    after = service.call("GET", order.path)
    still = 0 if voided.at("error.type") == AUTHORIZATION_EXPIRED else _cents(after, "remaining")
    problems = [f"{still} cents are reserved"] if reserved and still else []
    if not is_refunded or (captured and "has-refunds" not in after.list_at("flags")):
        problems.append(f"{captured} cents were paid, and not all of it is refunded")
    return ", ".join(problems) or REFUNDED_OR_VOIDED


def _refund_rest(service: Service, path: str, captured: int) -> bool:
    """Refund the rest of the payment: in one refund, or line by line if lines were refunded before."""

    def refund(**portion: Any) -> ServiceAnswer:
        return service.call("POST", f"{path}refunds/", {"description": MARKER, **portion})

    portions: list[dict[str, Any]] = [{}, {"amount": captured}, {"order_lines": lines_worth(captured)}]
    if any(_is_refund(refund(**each), NOTHING_TO_REFUND) for each in portions):
        return True
    for line in LINES:
        one = line_quantity(1, line["merchant_order_line_id"])
        answers = (refund(order_lines=one) for _ in range(line["quantity"]))
        refused = next((each for each in answers if not each.is_success), None)
        if refused is not None and not _is_refund(refused, NOTHING_TO_REFUND, REFUND_EXCEEDS_CAPTURED):
            return False
    return True


def _is_refund(answer: ServiceAnswer, *harmless: str) -> bool:
    return answer.is_success or answer.at("error.type") in harmless


def _cents(order: ServiceAnswer, name: str) -> int:
    """Return an amount of an order in cents, a number or a string; 0 if it is malformed."""
    text = str(order.at(f"amount_details.{name}"))
    return int(text) if text.isascii() and text.isdigit() else 0
