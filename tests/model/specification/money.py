"""Authorizations, captures, voids and refunds (capture and void rules 1 to 6)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from tests.model.specification.calls import Capture, CreateRefund, Refusal, RequestedLines, Void, refuse_if
from tests.model.specification.records import (
    LARGEST_AMOUNT,
    Attempt,
    Authorization,
    LineItem,
    Order,
    add_period,
)


def is_amount(amount: Any, largest: int = LARGEST_AMOUNT) -> bool:
    """Whether a value is an amount, unlike 12.95, "1295", true or null (ORD-05, LIM-02, SET-11, A08)."""
    return type(amount) is int and 1 <= amount <= largest


def authorize(attempt: Attempt, order: Order, now: datetime) -> Attempt:
    """Authorize an attempt, and restart its period (CAP-01, SET-45, A14)."""
    nothing = (0,) * len(order.lines)
    expires, is_delayed = add_period(now, attempt.period), attempt.capture_mode == "delayed"
    held = Authorization(attempt.amount, expires, is_delayed, nothing, nothing)
    return replace(attempt, authorization=held)


def allocate(
    lines: Sequence[LineItem], available: Sequence[int], requested: RequestedLines
) -> tuple[int, ...] | None:
    """Split the requested quantities among the lines; return None if too few are available (LINE-04)."""
    allocated = [0] * len(lines)
    for line_id, quantity in requested:
        missing = quantity
        for index, line in enumerate(lines):
            if line.id == line_id:
                part = min(missing, available[index] - allocated[index])
                allocated[index] += part
                missing -= part
        if missing:
            return None
    return tuple(allocated)


def price(lines: Sequence[LineItem], quantities: Sequence[int]) -> int:
    """Return the price of these quantities of each line; a line's amount is per item (A16)."""
    return sum(line.amount * quantity for line, quantity in zip(lines, quantities, strict=True))


def _add(quantities: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(quantities, more, strict=True))


class LinesByStatus(NamedTuple):
    """The quantity of each line in each status; ``unnamed`` is authorized, or neither after expiry."""

    unnamed: tuple[int, ...]
    captured: tuple[int, ...]
    voided: tuple[int, ...]


def refunded_quantities(order: Order) -> tuple[int, ...]:
    """Return the refunded quantity of each line, without failed refunds."""
    refunds = [refund.lines for refund in order.refunds if refund.status != "error"]
    return tuple(map(sum, zip((0,) * len(order.lines), *refunds, strict=True)))


def lines_by_status(order: Order, authorization: Authorization) -> LinesByStatus:
    """Return which lines are captured and voided, for every reader of them (STA-19, STA-20, A41).

    A capture, a void and a refund by lines name items; a refunded item counts as captured. While something remains,
    no other item is captured or voided. Then the amounts decide: a void by amount covers whole items, last lines
    first, and the rest is captured, unless only lines were captured.
    """
    refunded = refunded_quantities(order)
    captured = [max(pair) for pair in zip(authorization.captured_lines, refunded, strict=True)]
    voided = list(authorization.voided_lines)
    unnamed = [line.quantity - c - v for line, c, v in zip(order.lines, captured, voided, strict=True)]
    if authorization.remaining:
        return LinesByStatus(tuple(unnamed), tuple(captured), tuple(voided))
    only_lines = authorization.captured == price(order.lines, authorization.captured_lines)
    budget = authorization.voided_by_amount
    for index, line in reversed(list(enumerate(order.lines))):
        for _ in range(unnamed[index]):
            is_voided = only_lines or 0 < line.amount <= budget
            budget -= line.amount if is_voided else 0
            (voided if is_voided else captured)[index] += 1
    return LinesByStatus((0,) * len(order.lines), tuple(captured), tuple(voided))


def malformed_refusals(order: Order, call: Capture | CreateRefund) -> list[Refusal]:
    """Refuse unknown lines, and quantities or amounts that are no positive integers (LINE-04, SET-11, LIM-02)."""
    known = {line.id for line in order.lines}
    is_known = all(line in known and is_amount(quantity) for line, quantity in call.lines or ())
    is_wrong = call.amount is not None and not is_amount(call.amount)
    return refuse_if(call.lines == () or not is_known or is_wrong)


def authorization_refusals(attempt: Attempt, now: datetime) -> list[Refusal]:
    """Refuse a call if the authorization is missing or expired (CAP-02, CAP-04, TRQ-05, ERR-03, VOID-02, SET-43)."""
    expired, missing = Refusal(409, "AuthorizationExpired"), Refusal(409, "AuthorizationMissing")
    if attempt.authorization is None:
        return [missing, expired] if attempt.status == "expired" else [missing]
    if attempt.authorization.is_expired:
        return [expired]
    refusals = [expired] if now >= attempt.authorization.expires else []
    return [*refusals, missing] if attempt.status == "cancelled" else refusals


def capture_refusals(order: Order, attempt: Attempt, call: Capture, now: datetime) -> list[Refusal]:
    """Refuse a capture (capture and void rules 2 to 4; CAP-02 to CAP-09, SET-47, ERR-04, ERR-05)."""
    refusals, authorization = authorization_refusals(attempt, now), attempt.authorization
    if authorization is None:
        return malformed_refusals(order, call) + refusals
    if authorization.is_delayed:
        refusals.append(Refusal(409, "AuthorizationDelayed"))
    if call.style and authorization.style and call.style != authorization.style:
        refusals.append(Refusal(409, "CaptureStyleMixed"))
    return refusals + excess_refusals(order, authorization, call, "CaptureExceedsRemainder")


def void_refusals(order: Order, attempt: Attempt, call: Void, now: datetime) -> list[Refusal]:
    """Refuse a void beyond the remainder, in cents or items (VOID-01, VOID-02, A15)."""
    refusals = authorization_refusals(attempt, now)
    if attempt.authorization is None:
        return malformed_refusals(order, call) + refusals
    return refusals + excess_refusals(order, attempt.authorization, call, "VoidExceedsRemainder")


def excess_refusals(order: Order, authorization: Authorization, call: Capture, kind: str) -> list[Refusal]:
    """Refuse a malformed request, or an amount or lines beyond the remainder (SET-47, VOID-01)."""
    refusals = malformed_refusals(order, call)
    if refusals:
        return refusals
    cents, _ = _requested_portion(order, authorization, call)
    is_over = cents is None or not 1 <= cents <= authorization.remaining
    return [Refusal(409, kind)] if is_over else []


def _requested_portion(
    order: Order, authorization: Authorization, call: Capture
) -> tuple[int | None, tuple[int, ...]]:
    """Return the requested amount and quantities; the amount is None if too few items are available."""
    nothing = (0,) * len(order.lines)
    if call.lines is not None:
        allocated = allocate(order.lines, lines_by_status(order, authorization).unnamed, call.lines)
        return (None, nothing) if allocated is None else (price(order.lines, allocated), allocated)
    return (authorization.remaining if call.amount is None else call.amount), nothing


def apply_capture(order: Order, authorization: Authorization, call: Capture) -> Authorization:
    """Capture by lines, by amount or in full (PLA-03, INV-03, STA-19, END-11, END-13, END-14)."""
    cents, quantities = _requested_portion(order, authorization, call)
    assert cents is not None, "refused before"
    return replace(
        authorization,
        captured=authorization.captured + cents,
        captured_lines=_add(authorization.captured_lines, quantities),
        style=authorization.style or call.style,
    )


def apply_void(order: Order, authorization: Authorization, call: Void) -> Authorization:
    """Void by lines or by amount, which reduces the authorization (PLA-04, STA-20, END-15, END-16)."""
    cents, quantities = _requested_portion(order, authorization, call)
    assert cents is not None, "refused before"
    return replace(
        authorization,
        voided=authorization.voided + cents,
        voided_by_amount=authorization.voided_by_amount + (cents if call.lines is None else 0),
        voided_lines=_add(authorization.voided_lines, quantities),
    )


def invoice_remainder(order: Order) -> int:
    """Return the money of a captured invoice that can be refunded, which needs lines (END-09)."""
    captured = sum(a.captured for a in order.attempts if a.facts.is_invoice and a.authorization)
    return max(0, min(captured - price(order.lines, refunded_quantities(order)), order.refundable))


def refund_refusals(order: Order, call: CreateRefund) -> list[Refusal]:
    """Refuse a refund of more than was received, by amount or by lines (SET-49, REF-01, END-09, A33, A45)."""
    by_amount = order.refundable - (invoice_remainder(order) if order.is_invoice else 0)
    needs_lines = order.is_invoice and call.lines is None and not by_amount
    malformed = malformed_refusals(order, call) or refuse_if(needs_lines)
    nothing = [Refusal(409, "NothingToRefund")] if order.refundable == 0 else []
    refusals = malformed + nothing
    if malformed:
        return refusals
    if order.is_invoice and call.lines is not None and call.amount is not None:
        difference = abs(requested_price(order, call.lines) - call.amount)
        refusals += refuse_if(difference > sum(quantity for _, quantity in call.lines))  # A46
    cents = requested_refund(order, call)[0]
    most = order.refundable
    if order.is_invoice and call.style:
        most = by_amount if call.lines is None else invoice_remainder(order)
    if cents is None or cents > most:
        refusals.append(Refusal(409, "RefundExceedsCaptured"))
    return refusals


def line_authorization(order: Order) -> Authorization | None:
    """Return the authorization that decides about the lines, unless another attempt paid for all of them."""
    authorizations = [attempt.authorization for attempt in order.attempts if attempt.authorization]
    used = [a for a in authorizations if a.captured or (a.remaining and not a.is_expired)]
    return next(iter(used or ([] if order.is_paid else authorizations)), None)


def paid_lines(order: Order) -> LinesByStatus:
    """Return the lines of an order by status; a completed sale or transfer has captured all (A41)."""
    authorization = line_authorization(order)
    if authorization is not None:
        return lines_by_status(order, authorization)
    nothing = (0,) * len(order.lines)
    everything = tuple(line.quantity for line in order.lines)
    return LinesByStatus(nothing, everything if order.is_paid else nothing, nothing)


def refundable_quantities(order: Order) -> tuple[int, ...]:
    """Return the refundable quantity of each line: captured, or not decided after captures by amount (A41)."""
    lines, authorization = paid_lines(order), line_authorization(order)
    is_undecided = authorization is not None and authorization.captured > price(
        order.lines, authorization.captured_lines
    )
    captured = _add(lines.captured, lines.unnamed) if is_undecided else lines.captured
    return tuple(a - b for a, b in zip(captured, refunded_quantities(order), strict=True))


def requested_price(order: Order, requested: RequestedLines) -> int:
    """Return the price of requested lines, whether they can be refunded or not."""
    prices = {line.id: line.amount for line in order.lines}
    return sum(prices[line_id] * quantity for line_id, quantity in requested)


def requested_refund(order: Order, call: CreateRefund) -> tuple[int | None, tuple[int, ...]]:
    """Return the amount and quantities of a refund; lines decide for the invoice method, else the amount (A46).

    Without either, everything is refunded, an invoice's lines included.
    """
    nothing = (0,) * len(order.lines)
    if call.lines is None:
        quantities = refundable_quantities(order) if order.is_invoice and call.amount is None else nothing
        return (order.refundable if call.amount is None else call.amount), quantities
    allocated = allocate(order.lines, refundable_quantities(order), call.lines)
    if call.amount not in (None, requested_price(order, call.lines)) and not order.is_invoice:
        return call.amount, nothing
    return (None, nothing) if allocated is None else (price(order.lines, allocated), allocated)
