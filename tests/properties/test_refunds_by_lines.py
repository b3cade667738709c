"""A refund by lines gives the answer that ``order_line_details`` shows, after any captures, voids and refunds."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.lines import LineQuantity, OrderLine
from payment_sandbox.orders.order import Order, RefundEntry
from payment_sandbox.orders.refunds import (
    PlannedRefund,
    RefundRequest,
    lines_by_status,
    plan_refund,
    refundable_cents,
    refunded_quantities,
)
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.orders.transaction import Transaction
from tests.model.letters import AMOUNT, LINES
from tests.model.specification import money, records
from tests.model.specification.calls import Capture, CreateRefund, Void
from tests.model.specification.records import START

Step = Capture | Void | CreateRefund
EXPIRES: Final = START + timedelta(days=1)
LENGTH: Final = 3
SOCKS, POST, ALL = (("socks", 1),), (("post", 1),), (("socks", 3), ("post", 1))
STEPS: Final[tuple[Step, ...]] = (
    *(Capture(0, 0, lines=lines) for lines in (SOCKS, POST, ALL)),
    *(Capture(0, 0, amount=cents) for cents in (250, 300, 750)),
    Capture(0, 0),
    *(Void(0, 0, lines=lines) for lines in (SOCKS, POST, (("socks", 2),))),
    *(Void(0, 0, amount=cents) for cents in (100, 250, 500)),
    *(CreateRefund(0, lines=lines) for lines in (SOCKS, POST)),
    CreateRefund(0, amount=250),
)
ORDER_LINES: Final = tuple(
    OrderLine(line.amount, line.quantity, "EUR", "physical", line.id, line.id) for line in LINES
)


class Pair:
    """An authorized order, and the same order in the model."""

    def __init__(self, method: str) -> None:
        held = Authorization(AMOUNT, ORDER_LINES, delayed=False, authorized_at=START, expires_at=EXPIRES)
        attempt = Transaction(
            "", method, method, AMOUNT, START, START, "P1D", EXPIRES, "", "completed", authorization=held
        )
        self.order = Order(
            id="",
            amount_cents=AMOUNT,
            currency="EUR",
            client={},
            is_test=True,
            status="completed",
            order_lines=ORDER_LINES,
            transactions=(attempt,),
            created=START,
            modified=START,
        )
        nothing = (0,) * len(LINES)
        self.model = records.Order(
            AMOUNT,
            "completed",
            None,
            LINES,
            attempts=(
                records.Attempt(
                    method,
                    AMOUNT,
                    "completed",
                    "P1D",
                    EXPIRES,
                    authorization=records.Authorization(AMOUNT, EXPIRES, False, nothing, nothing),
                ),
            ),
        )

    def copy(self) -> "Pair":
        """Return a copy, to take another step."""
        copy: Pair = object.__new__(Pair)
        copy.order, copy.model = self.order.copy(), self.model
        return copy

    def plan(self, call: CreateRefund) -> PlannedRefund | Refusal:
        """Plan a refund."""
        lines = [LineQuantity(*line) for line in call.lines] if call.lines is not None else None
        needs_lines = self.model.is_invoice
        try:
            return plan_refund(
                self.order, RefundRequest(call.amount, lines, needs_lines, follows_lines=False)
            )
        except Refusal as refused:
            return refused

    def take(self, step: Step) -> bool:
        """Take a step on both sides, which must agree on whether it is possible."""
        is_possible = self._refund(step) if isinstance(step, CreateRefund) else self._settle(step)
        attempt = self.model.attempts[0]
        if isinstance(step, CreateRefund):
            refused = money.refund_refusals(self.model, step)
            if not refused:
                cents, quantities = money.requested_refund(self.model, step)
                assert cents is not None
                refund = records.Refund(cents, "completed", quantities)
                self.model = replace(self.model, refunds=(*self.model.refunds, refund))
        else:
            assert attempt.authorization is not None
            held = attempt.authorization
            if isinstance(step, Void):
                refused = money.void_refusals(self.model, attempt, step, START)
                held = held if refused else money.apply_void(self.model, held, step)
            else:
                refused = money.capture_refusals(self.model, attempt, step, START)
                held = held if refused else money.apply_capture(self.model, held, step)
            if not refused:
                self.model = replace(self.model, attempts=(replace(attempt, authorization=held),))
        assert is_possible is not bool(refused), (step, refused)
        return is_possible

    def _refund(self, step: CreateRefund) -> bool:
        planned = self.plan(step)
        if isinstance(planned, Refusal):
            return False
        entry = RefundEntry("", planned.amount_cents, planned.quantities)
        self.order.refunds = (*self.order.refunds, entry)
        return True

    def _settle(self, step: Capture | Void) -> bool:
        attempt = self.order.transactions[0]
        held = attempt.authorization
        assert held is not None
        lines = [LineQuantity(*line) for line in step.lines or ()]
        try:
            if isinstance(step, Void):
                attempt.authorization = (
                    held.void_lines(lines, refunded_quantities(self.order), None, now=START)
                    if lines
                    else held.void_amount(step.amount, None, now=START)
                )
            elif step.amount is None and not lines:
                attempt.authorization = held.capture_remainder(now=START)
            else:
                attempt.authorization = (
                    held.capture_lines(lines, None, now=START)
                    if lines
                    else held.capture_amount(step.amount, None, now=START)
                )
        except Refusal:
            return False
        return True


def sequences(pair: Pair, length: int) -> Iterator[Pair]:
    """Yield the pair, and the pairs after every possible sequence of steps up to a length."""
    yield pair
    for step in STEPS if length else ():
        after = pair.copy()
        if after.take(step):
            yield from sequences(after, length - 1)


@pytest.mark.rule("A41", "END-09")
@pytest.mark.parametrize("method", ["pay-later-a", "invoice-later-b"])
def test_refunds_by_lines_agree_with_the_details(method: str) -> None:
    """What is captured can be refunded, and nothing else; the model agrees on each line and each refund."""
    count = 0
    for pair in sequences(Pair(method), LENGTH):
        count += 1
        held = pair.order.transactions[0].authorization
        assert held is not None
        lines, modelled = lines_by_status(pair.order), money.paid_lines(pair.model)
        refunded = refunded_quantities(pair.order)
        for index, line in enumerate(LINES):
            parts = [part.get(index, 0) for part in lines]
            assert parts == [modelled.unnamed[index], modelled.captured[index], modelled.voided[index]]
            assert sum(parts) == line.quantity
            refund = CreateRefund(0, lines=((line.id, 1),))
            is_refunded = not isinstance(pair.plan(refund), Refusal)
            assert is_refunded is not bool(money.refund_refusals(pair.model, refund))
            if not held.remaining_cents:
                is_captured = parts[1] > refunded.get(index, 0)
                assert is_refunded is (is_captured and refundable_cents(pair.order) >= line.amount)
    assert count > 500
