"""Verdicts on runs."""

import sqlite3
from datetime import datetime
from typing import Any

import pytest

from payment_sandbox import BookEntry
from payment_sandbox.testing.project_fixture import PaymentSandbox
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.judging import (
    RunVerdict,
    Trial,
    in_order,
    rename_numbers,
)
from pytest_payment_sandbox.rehearsal.run import RehearsedRun
from pytest_payment_sandbox.rehearsal.showing import EMPTY_VIEW
from tests.support.in_process import place, project_of, shop_that
from tests.support.shop import Shop


class Judging:
    """Judges runs of one project with these books."""

    def __init__(self, payment_sandbox: PaymentSandbox) -> None:
        self.project = project_of(payment_sandbox)
        self.order_id = place(payment_sandbox)
        self.entries: list[BookEntry] = []

    def verdict(self, *changes: str) -> RunVerdict:
        """Judge a run with these changes; no time passes."""
        changed = [parse_changed_step(each) for each in changes]
        run = RehearsedRun(self.project, changed)
        self.project.rehearse(run)
        view, books = (lambda: EMPTY_VIEW), (lambda: self.entries)
        return Trial(run, changed, None, None, view, lambda end: None, books).verdict()

    def set_books(self, **fields: Any) -> None:
        """Set the shop's entry for the order."""
        self.entries = [BookEntry("S-1", [self.order_id], **fields)]


@pytest.fixture
def judging(payment_sandbox: PaymentSandbox) -> Judging:
    """A project with one order, and its judge."""
    return Judging(payment_sandbox)


@pytest.mark.parametrize("is_paid", [False, True])
def test_a_webhook_for_the_end_of_an_unpaid_order_needs_no_read(
    payment_sandbox: PaymentSandbox, is_paid: bool
) -> None:
    """A shop that has given up an order may ignore its expiry, even days later, but no payment."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: None))
    judging = Judging(payment_sandbox)
    if is_paid:
        payment_sandbox.act(judging.order_id)
    payment_sandbox.clock.advance("P2D")
    assert "HOOK-08" in {finding.rule for finding in payment_sandbox.review()}
    judging.set_books(paid=1295 if is_paid else 0)
    kinds = {problem.kind for problem in judging.verdict("action:1:walks-away").problems}
    assert ("review HOOK-08" in kinds) is is_paid


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        ("database table is locked: sale", []),
        ("database is locked", []),
        ("no such table: sale", ["review HOOK-09"]),
    ],
)
def test_a_locked_sqlite_database_is_busy(
    payment_sandbox: PaymentSandbox, error: str, kinds: list[str]
) -> None:
    """A test's database has no server: one of two handlers meets its lock, and the retry works."""
    failures = [sqlite3.OperationalError(error)]

    def handle(order_id: str) -> None:
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
        if failures:
            raise failures.pop()

    payment_sandbox.deliver_to(shop_that(handle))
    judging = Judging(payment_sandbox)
    payment_sandbox.act(judging.order_id)
    payment_sandbox.clock.advance("PT3M")
    judging.set_books(paid=1295)
    assert [problem.kind for problem in judging.verdict("webhook:1:together").problems] == kinds


@pytest.mark.parametrize(("failure", "is_problem"), [(None, True), ("AssertionError: no goods", False)])
def test_a_failed_test_may_have_closed_the_shop(
    payment_sandbox: PaymentSandbox, failure: str | None, is_problem: bool
) -> None:
    """A shop in the test's process owes no answer once its test has failed, and closed its database."""
    payment_sandbox.deliver_to(shop_that(lambda order_id: ("the database is closed", 500)))
    judging = Judging(payment_sandbox)
    run = RehearsedRun(judging.project)
    judging.project.rehearse(run)
    view, pay = (lambda: EMPTY_VIEW), (lambda end: payment_sandbox.act(place(payment_sandbox)))
    verdict = Trial(run, [], failure, None, view, pay, None).verdict()
    assert ("review HOOK-09" in {problem.kind for problem in verdict.problems}) is is_problem


@pytest.mark.parametrize(("shipped", "kinds"), [(0, set()), (1295, {"shipped-unpaid"})])
def test_a_shop_that_has_ended_is_judged_by_its_books_at_the_end(
    payment_sandbox: PaymentSandbox, shipped: int, kinds: set[str]
) -> None:
    """A shop that ended with its test records no later payment, but what it has shipped is a problem."""
    shop = Shop()
    payment_sandbox.client.change_settings(webhook_url=shop.url)
    judging = Judging(payment_sandbox)
    judging.set_books(shipped=shipped)
    settled = payment_sandbox.act(place(payment_sandbox))["id"]
    payment_sandbox.client.wait(idle=True)
    shop.close()

    def pay_late(end: datetime) -> None:
        payment_sandbox.act(place(payment_sandbox))
        payment_sandbox.clock.advance("P2D")

    run = RehearsedRun(judging.project)
    judging.project.rehearse(run)
    entries = [*judging.entries, BookEntry("S-2", [settled], paid=1295)]
    verdict = Trial(run, [], None, None, lambda: EMPTY_VIEW, pay_late, lambda: entries).verdict()
    assert run.has_shop_ended
    assert {each.kind for each in verdict.problems if not each.kind.startswith("review")} == kinds


@pytest.mark.parametrize(
    ("entries", "is_same"),
    [
        ([BookEntry("S-18", ["b"], 5), BookEntry("S-17", ["a"], 9)], True),
        ([BookEntry("S-1", ["a"], 9), BookEntry("S-1", ["b"], 5)], False),
        ([BookEntry("S-1", ["a"], 9), BookEntry("S-2", ["b"], 6)], False),
    ],
)
def test_numbers_of_purchases_are_renamed_by_their_first_appearance(
    entries: list[BookEntry], is_same: bool
) -> None:
    """A database that counts across runs makes no other state; other amounts do."""
    usual = [BookEntry("S-1", ["a"], 9), BookEntry("S-2", ["b"], 5)]
    states = [rename_numbers(in_order(each, ["a", "b"])) for each in (usual, entries)]
    assert (states[0] == states[1]) is is_same


@pytest.mark.payment_settings(mode="live")
def test_a_surplus_is_no_finding_of_a_rehearsal(payment_sandbox: PaymentSandbox) -> None:
    """Only the review reports a surplus, because no response shows it to the shop."""
    order_id = place(payment_sandbox, transactions=[{"payment_method": "bank-transfer"}])
    url = f"{payment_sandbox.base_url}/v1/orders/"
    judging = Judging(payment_sandbox)
    payment_sandbox.act(order_id, "bank", "credit", amount=1395)
    judging.entries = [BookEntry("S-1", [order_id], amount=1295, paid=1295, shipped=1295)]
    order = payment_sandbox.session.get(f"{url}{order_id}/?fields[]=amount_details").json()
    assert (order["amount"], order["amount_details"]["captured"]) == (1295, 1295)
    payment_sandbox.clock.advance("P2D")
    assert "HOOK-13" in {finding.rule for finding in payment_sandbox.review()}
    assert [problem.kind for problem in judging.verdict().problems] == []
