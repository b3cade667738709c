"""What a shop believes is held against what the service knows."""

from typing import Any

import pytest

from payment_sandbox import BookEntry, PaymentSandbox
from pytest_payment_sandbox.rehearsal.books import (
    OrderRecord,
    compare_books,
    find_missed_authorizations,
    find_reversals,
    find_unpaid_purchases,
    order_records,
)
from pytest_payment_sandbox.rehearsal.judging import read_books


def entry(**fields: Any) -> BookEntry:
    """What a shop believes of a purchase for 10 euros."""
    return BookEntry(**{"purchase": "S-1", "orders": ["a", "b"], "amount": 1000, "paid": 1000, **fields})


def record(order_id: str = "a", **fields: Any) -> OrderRecord:
    """What the service knows of an order: paid, unless something else is said."""
    known = {"status": "completed", "received": 1000, "authorized": 0, "capturable": False, "refunded": 0}
    return OrderRecord(order_id, **{**known, **fields})


def kinds(entries: list[BookEntry], *records: OrderRecord) -> list[str]:
    """The kinds of problems."""
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
    """Nothing is wrong, as far as it can be told."""
    assert kinds([entry(**believed)], record(**known)) == []


@pytest.mark.parametrize(
    ("believed", "known", "kind", "words"),
    [
        ({"shipped": 1000}, {"received": 600}, "shipped-unpaid", "€10.00 were shipped, but only €6.00"),
        ({"shipped": 1000}, {"received": 0, "authorized": 1000}, "shipped-unpaid", "nothing was received"),
        ({"shipped": 2000}, {"received": 2000}, "shipped-twice", "but the purchase costs only €10.00"),
        ({}, {"received": 0}, "paid-for-nothing", "no payment was made"),
        ({"paid": 0}, {}, "payment-missed", "paid €10.00, but the shop does not mark it as paid"),
        ({"refunded": 5}, {"refunded": 4}, "refunds-differ", "€0.05, but the customer received €0.04"),
        ({"cancelled": True}, {}, "cancelled-but-kept", "but kept €10.00"),
    ],
)
def test_books_that_differ(believed: dict[str, Any], known: dict[str, Any], kind: str, words: str) -> None:
    """Each in a sentence about its effect."""
    (problem,) = compare_books([entry(**believed)], {"a": record(**known)})
    assert (problem.kind, words in problem.sentence) == (kind, True), problem


def test_a_purchase_that_is_paid_twice() -> None:
    """With two of its orders."""
    assert kinds([entry()], record("a"), record("b")) == ["paid-twice"]
    assert kinds([entry(refunded=1000)], record("a"), record("b", refunded=1000)) == []
    reserved = record("b", received=0, authorized=1000, capturable=True)
    assert kinds([entry()], record("a"), reserved) == ["paid-twice"]


def test_money_for_an_order_that_the_shop_does_not_know() -> None:
    """It was created, and the response was lost."""
    assert kinds([], record()) == ["unknown-money"]
    assert kinds([], record(received=0)) == []


def test_an_authorization_that_was_voided_holds_no_money(payment_sandbox: PaymentSandbox) -> None:
    """So a shop that cancels a sale may say that nobody pays for it."""
    attempt = {"payment_method": "credit-card", "capture_mode": "manual"}
    order = {"currency": "EUR", "amount": 1000, "transactions": [attempt]}
    url = f"{payment_sandbox.base_url}/v1/orders/"
    order_id = payment_sandbox.session.post(url, json=order).json()["id"]
    payment_sandbox.act(order_id)
    project = payment_sandbox.server.project_of(payment_sandbox.api_key)
    assert project is not None
    assert order_records(project)[order_id].capturable
    payment_sandbox.session.delete(f"{url}{order_id}/")
    assert not order_records(project)[order_id].capturable


def test_an_authorization_that_the_shop_does_not_know() -> None:
    """It is missed while it can still be captured."""
    authorized = {"a": record(received=0, authorized=1000, capturable=True)}
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
    """Others are refused, with those that there are."""
    with pytest.raises(
        ValueError, match="payment_books must return entries with purchase, orders, amount, paid"
    ):
        BookEntry.read(wrong)


def went(before: dict[str, Any], now: dict[str, Any], **known: Any) -> list[str]:
    """What is wrong with what a shop has believed first and then."""
    problems = find_reversals([[entry(**before)], [], [entry(**now)]], {"a": record(**known)})
    assert problems == []  # nothing was told in between
    return [
        problem.sentence
        for problem in find_reversals([[entry(**before)], [entry(**now)]], {"a": record(**known)})
    ]


def test_what_was_believed_stays_true() -> None:
    """Unless the money was given back."""
    assert went({}, {"paid": 0}) == [
        "S-1: the shop marked it as paid and later as unpaid, although the shop kept €10.00"
    ]
    fell = "S-1: the value of the shipped goods fell from €10.00 to €4.00"
    assert went({"shipped": 1000}, {"shipped": 400}) == [fell]
    assert went({}, {"paid": 0}, refunded=1000) == []
    assert went({}, {"paid": 0}, received=0, authorized=1000) == []
    assert went({}, {"paid": 0, "cancelled": True}) == []
    assert went({"paid": 0}, {"shipped": 1000}) == []


def test_books_that_return_nothing_are_told() -> None:
    """A forgotten return is not a shop without purchases."""
    with pytest.raises(TypeError, match="payment_books must return a list of entries, not None"):
        read_books(lambda: None)  # type: ignore[arg-type, return-value]


def test_an_entry_can_be_a_mapping() -> None:
    """Then nothing has to be imported."""
    assert BookEntry.read({"purchase": "S-1", "orders": ["a"]}) == BookEntry("S-1", ["a"])
