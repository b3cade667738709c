"""The shop's books are compared with the orders of the service."""

from typing import Any

import pytest

from payment_sandbox import BookEntry, PaymentSandbox
from pytest_payment_sandbox.rehearsal.judging import read_books
from pytest_payment_sandbox.rehearsal.reconciliation import (
    OrderRecord,
    compare_books,
    find_missed_authorizations,
    find_reversals,
    find_unpaid_purchases,
    order_records,
)
from tests.support.in_process import place, project_of


def entry(**fields: Any) -> BookEntry:
    """Return the shop's entry for a purchase of 10 euros."""
    return BookEntry(**{"purchase": "S-1", "orders": ["a", "b"], "amount": 1000, "paid": 1000, **fields})


def record(order_id: str = "a", **fields: Any) -> OrderRecord:
    """Return the service's record of an order, which is paid by default."""
    known = {"status": "completed", "received": 1000, "authorized": 0, "reserved": 0, "refunded": 0}
    return OrderRecord(order_id, **{**known, **fields})


def problem_kinds(entries: list[BookEntry], *records: OrderRecord) -> list[str]:
    """Return the kinds of problems."""
    return [
        problem.kind for problem in compare_books(entries, {record.order_id: record for record in records})
    ]


@pytest.mark.parametrize(
    ("believed", "known"),
    [
        ({}, {}),
        ({"paid": 0}, {"received": 0}),
        ({"shipped": 1000}, {}),
        ({"shipped": 600}, {"received": 600, "authorized": 1000}),
        ({"refunded": 400}, {"refunded": 400}),
        ({}, {"received": 0, "authorized": 1000}),
        ({"paid": 0, "cancelled": True}, {"received": 0, "authorized": 1000}),
        ({"cancelled": True, "refunded": 1000}, {"refunded": 1000}),
        ({"amount": 0, "shipped": 900}, {}),
    ],
)
def test_books_that_agree(believed: dict[str, Any], known: dict[str, Any]) -> None:
    """Books that agree with the service have no problem."""
    assert problem_kinds([entry(**believed)], record(**known)) == []


@pytest.mark.parametrize(
    ("believed", "known", "kind", "words"),
    [
        ({"shipped": 1000}, {"received": 600}, "shipped-unpaid", "€10.00 were shipped, but only €6.00"),
        ({"shipped": 1000}, {"received": 0, "authorized": 1000}, "shipped-unpaid", "nothing was received"),
        ({"shipped": 2000}, {"received": 2000}, "shipped-twice", "but the purchase costs only €10.00"),
        ({}, {"received": 0}, "paid-for-nothing", "no payment was made"),
        ({}, {"received": 600}, "paid-in-part", "marks €10.00 as paid, but only €6.00 was paid"),
        ({"paid": 0}, {}, "payment-missed", "paid €10.00, but the shop does not mark it as paid"),
        ({"refunded": 5}, {"refunded": 4}, "refunds-differ", "€0.05, but the customer received €0.04"),
        ({"cancelled": True}, {}, "cancelled-but-kept", "but kept €10.00"),
        ({"paid": 0, "cancelled": True}, {}, "cancelled-but-kept", "but kept €10.00"),
    ],
)
def test_books_that_differ(believed: dict[str, Any], known: dict[str, Any], kind: str, words: str) -> None:
    """Each difference is a problem with a sentence about its effect."""
    (problem,) = compare_books([entry(**believed)], {"a": record(**known)})
    assert (problem.kind, words in problem.sentence) == (kind, True), problem


def test_a_purchase_that_is_paid_twice() -> None:
    """Two paid or authorized orders of a purchase are a problem."""
    assert problem_kinds([entry()], record("a"), record("b")) == ["paid-twice"]
    assert problem_kinds([entry(refunded=1000)], record("a"), record("b", refunded=1000)) == []
    reserved = record("b", received=0, authorized=1000, reserved=1000)
    (problem,) = compare_books([entry()], {"a": record("a"), "b": reserved})
    assert problem.sentence.endswith("the customer paid 2 times, €20.00 in total")


def test_a_payment_for_an_unknown_order() -> None:
    """A payment for an order that is missing from the books is a problem."""
    assert problem_kinds([], record()) == ["unknown-money"]
    assert problem_kinds([], record(received=0)) == []


def test_an_authorization_that_was_voided_holds_no_money(payment_sandbox: PaymentSandbox) -> None:
    """A shop may mark a sale as unpaid once its authorization is voided."""
    attempt = {"payment_method": "credit-card", "capture_mode": "manual"}
    order_id = place(payment_sandbox, transactions=[attempt])
    payment_sandbox.act(order_id)
    project = project_of(payment_sandbox)
    assert order_records(project)[order_id].reserved
    payment_sandbox.session.delete(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
    assert not order_records(project)[order_id].reserved


def test_an_unknown_authorization() -> None:
    """An authorization that is missing from the books is a problem while it can be captured."""
    authorized = {"a": record(received=0, authorized=1000, reserved=1000)}
    assert [problem.kind for problem in find_missed_authorizations([entry(paid=0)], authorized)] == [
        "payment-missed"
    ]
    assert find_missed_authorizations([entry()], authorized) == []
    unknown = find_missed_authorizations([], authorized)
    assert [problem.kind for problem in unknown] == ["unknown-money"]
    assert find_unpaid_purchases([entry()], authorized) == []
    assert [problem.kind for problem in find_unpaid_purchases([entry()], {"a": record(received=0)})] == [
        "paid-for-nothing"
    ]


@pytest.mark.parametrize("wrong", ["S-1", {"purchase": "S-1"}, {"purchase": "S-1", "orders": [], "payed": 5}])
def test_an_entry_has_known_fields(wrong: Any) -> None:
    """An entry with unknown fields is refused with a list of the known fields."""
    with pytest.raises(
        ValueError, match="payment_books must return entries with purchase, orders, amount, paid"
    ):
        BookEntry.read(wrong)


def reversals(before: dict[str, Any], after: dict[str, Any], **known: Any) -> list[str]:
    """Return the problems of books that changed from one state to the other."""
    problems = find_reversals([[entry(**before)], [], [entry(**after)]], {"a": record(**known)})
    assert problems == []  # an empty list is no reversal
    return [
        problem.sentence
        for problem in find_reversals([[entry(**before)], [entry(**after)]], {"a": record(**known)})
    ]


def test_books_must_not_go_back() -> None:
    """A paid purchase must stay paid unless its money is returned, and shipped goods stay shipped."""
    assert reversals({}, {"paid": 0}) == [
        "S-1: the shop marked it as paid and later as unpaid, although the shop kept €10.00"
    ]
    decrease = "S-1: the value of the shipped goods fell from €10.00 to €4.00"
    assert reversals({"shipped": 1000}, {"shipped": 400}) == [decrease]
    assert reversals({}, {"paid": 0}, refunded=1000) == []
    assert reversals({}, {"paid": 0}, received=0, authorized=1000) == []
    assert reversals({}, {"paid": 0, "cancelled": True}) == []
    assert reversals({"paid": 0}, {"shipped": 1000}) == []


def test_books_without_a_return_value_are_refused() -> None:
    """Books without a return value are refused, because a list may be empty."""
    with pytest.raises(TypeError, match="payment_books must return a list of entries, not None"):
        read_books(lambda: None)  # type: ignore[arg-type, return-value]


def test_an_entry_can_be_a_mapping() -> None:
    """An entry can be a mapping, which needs no import."""
    assert BookEntry.read({"purchase": "S-1", "orders": ["a"]}) == BookEntry("S-1", ["a"])
