"""The shop's books are compared with the money of its orders."""

from collections.abc import Callable
from typing import Any

import pytest

from payment_sandbox import BookEntry, PaymentSandbox
from payment_sandbox.judge.books import BookProblem, compare
from pytest_payment_sandbox.rehearsal.scenes import orders_of
from tests.support.in_process import place, project_of

CARD = {"payment_method": "credit-card", "capture_mode": "manual"}
Flow = Callable[[PaymentSandbox], list[str]]


def paid(sandbox: PaymentSandbox, amount: int = 1000) -> list[str]:
    """Return a paid order."""
    order_id = place(sandbox, amount=amount)
    sandbox.act(order_id)
    return [order_id]


def unpaid(sandbox: PaymentSandbox) -> list[str]:
    """Return an order that nobody has paid."""
    return [place(sandbox, amount=1000)]


def authorized(sandbox: PaymentSandbox) -> list[str]:
    """Return an order whose amount is reserved."""
    order_id = place(sandbox, amount=1000, transactions=[CARD])
    sandbox.act(order_id)
    return [order_id]


def _move(sandbox: PaymentSandbox, order_id: str, call: str, **body: Any) -> None:
    url = f"{sandbox.base_url}/v1/orders/{order_id}/"
    transaction = sandbox.session.get(url).json()["transactions"][0]["id"]
    path = call if call == "refunds/" else f"transactions/{transaction}/{call}"
    assert sandbox.session.post(f"{url}{path}", json=body).ok


def captured(sandbox: PaymentSandbox, amount: int = 600) -> list[str]:
    """Return an order with a captured part."""
    (order_id,) = authorized(sandbox)
    _move(sandbox, order_id, "captures/amount/", amount=amount, description="a parcel")
    return [order_id]


def refunded(sandbox: PaymentSandbox, amount: int = 400) -> list[str]:
    """Return an order with a refund."""
    (order_id,) = paid(sandbox)
    _move(sandbox, order_id, "refunds/", amount=amount)
    return [order_id]


def problems(sandbox: PaymentSandbox, flow: Flow, **believed: Any) -> list[BookProblem]:
    """Return the problems of a purchase of 10 euros."""
    entry = {"purchase": "S-1", "orders": flow(sandbox), "amount": 1000, "paid": 1000}
    return compare([BookEntry(**{**entry, **believed})], orders_of(project_of(sandbox)))


@pytest.mark.parametrize(
    ("flow", "believed"),
    [
        (paid, {}),
        (paid, {"shipped": 1000}),
        (paid, {"amount": 0, "shipped": 900}),
        (unpaid, {"paid": 0}),
        (unpaid, {"paid": 0, "cancelled": True}),
        (authorized, {}),
        (authorized, {"shipped": 1000}),
        (captured, {"shipped": 600}),
        (refunded, {"refunded": 400}),
        (lambda sandbox: refunded(sandbox, 1000), {"cancelled": True, "refunded": 1000}),
        (lambda sandbox: [*paid(sandbox, 400), *paid(sandbox, 600)], {}),
    ],
)
def test_books_that_agree(payment_sandbox: PaymentSandbox, flow: Flow, believed: dict[str, Any]) -> None:
    """Books that agree with the money have no problem: a deposit and the rest under one entry, for example."""
    assert problems(payment_sandbox, flow, **believed) == []


@pytest.mark.parametrize(
    ("flow", "believed", "kind", "cents", "words"),
    [
        (unpaid, {"paid": 0, "shipped": 1000}, "shipped-unpaid", 1000, "but nothing was received for them"),
        (paid, {"shipped": 2000}, "shipped-twice", 1000, "but the purchase costs only €10.00"),
        (unpaid, {}, "paid-for-nothing", 1000, "no payment was made"),
        (
            lambda sandbox: paid(sandbox, 600),
            {},
            "paid-in-part",
            400,
            "€10.00 as paid, but only €6.00 was paid",
        ),
        (paid, {"paid": 0}, "payment-missed", 1000, "paid €10.00, but the shop does not mark it as paid"),
        (captured, {"paid": 0}, "capture-missed", 600, "was captured, but the shop's books show no payment"),
        (refunded, {"refunded": 500}, "refunds-differ", 100, "€5.00, but the customer received €4.00"),
        (refunded, {}, "refunds-differ", 400, "€0.00, but the customer received €4.00"),
        (paid, {"cancelled": True}, "cancelled-but-kept", 1000, "but kept €10.00"),
        (lambda sandbox: [*paid(sandbox), *authorized(sandbox)], {}, "paid-twice", 1000, "€20.00 in total"),
        (
            lambda sandbox: paid(sandbox) and [],
            {"paid": 0},
            "unknown-money",
            1000,
            "that the shop does not know",
        ),
    ],
)
def test_books_that_differ(
    payment_sandbox: PaymentSandbox, flow: Flow, believed: dict[str, Any], kind: str, cents: int, words: str
) -> None:
    """Each difference is a problem with a sentence about its effect, and the cents at risk."""
    (problem,) = problems(payment_sandbox, flow, **believed)
    assert (problem.kind, problem.cents, words in problem.sentence) == (kind, cents, True), problem


def test_a_refund_in_progress_may_stand_in_the_books_or_not(payment_sandbox: PaymentSandbox) -> None:
    """Nobody knows yet what becomes of it."""
    payment_sandbox.scenario("refund-settles-later")
    orders = refunded(payment_sandbox)

    def kinds(cents: int) -> list[str]:
        entry = BookEntry("S-1", orders, 1000, 1000, refunded=cents)
        return [each.kind for each in compare([entry], orders_of(project_of(payment_sandbox)))]

    assert [kinds(cents) for cents in (0, 400, 500)] == [[], [], ["refunds-differ"]]


@pytest.mark.parametrize("wrong", ["S-1", {"purchase": "S-1"}, {"purchase": "S-1", "orders": [], "payed": 5}])
def test_an_entry_has_known_fields(wrong: Any) -> None:
    """An entry with unknown fields is refused with a list of the known fields."""
    with pytest.raises(
        ValueError, match="payment_books must return entries with purchase, orders, amount, paid"
    ):
        BookEntry.read(wrong)
    assert BookEntry.read({"purchase": "S-1", "orders": ["a"]}) == BookEntry("S-1", ["a"])
