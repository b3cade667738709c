"""The cause of a finding is a sign that all its variations share."""

from dataclasses import replace
from typing import Any

import pytest

from payment_sandbox import BookEntry, PaymentSandbox
from pytest_payment_sandbox.rehearsal.causes import BooksSnapshot, Signs, find_cause, observe_signs
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps, parse_variation
from pytest_payment_sandbox.rehearsal.driver import RehearsalOutcome
from pytest_payment_sandbox.rehearsal.findings import RehearsalFinding
from pytest_payment_sandbox.rehearsal.places import SourceLine
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem
from pytest_payment_sandbox.rehearsal.report import lines_of, report_of, rows_of
from tests.support.in_process import place, project_of

EARLY = "the shop marks a purchase as paid when it reads 'processing'"
LATER = "the shop marks a purchase as paid when it reads 'completed'"


RunSigns = tuple[ChangedSteps, Signs]


def run_signs(name: str, *signs: str) -> RunSigns:
    """Return a variation, and the signs of its run."""
    return parse_variation(name), frozenset(signs)


def cause_of(kind: str, failing: list[RunSigns], passing: list[RunSigns], usual: Signs = frozenset()) -> str:
    """Return the cause of a problem whose finding is the first failing run."""
    return find_cause(kind, failing[0][1], dict(failing), [signs for _, signs in passing], usual)


def test_a_shop_that_acts_on_a_payment_in_progress_is_the_cause() -> None:
    """An early action is the cause, even if the shop also acts early in the unchanged test."""
    failing = [run_signs("action:1:short", EARLY), run_signs("create:1:answer-lost", EARLY)]
    passing = [run_signs("webhook:1:twice", EARLY)]
    assert cause_of("paid-for-nothing", failing, passing, frozenset([EARLY])) == EARLY
    assert cause_of("paid-for-nothing", failing[:1], passing, frozenset([EARLY])) == EARLY
    assert cause_of("mailed-differently", failing[:1], passing, frozenset([EARLY])) == "", (
        "the sign does not concern mails"
    )


def test_a_cause_is_a_sign_of_the_run_of_the_finding() -> None:
    """A cause is said only if the run of the finding shows it, whatever the other runs show."""
    new = EARLY.replace("processing", "new")
    short, never = run_signs("action:1:short", EARLY), run_signs("action:1:never", new)
    assert cause_of("paid-for-nothing", [short, never], []) == EARLY
    assert cause_of("paid-for-nothing", [never, short], []) == new
    assert cause_of("paid-for-nothing", [run_signs("action:1:walks-away"), short], []) == ""


def test_a_paid_status_that_was_read_is_no_mistake(payment_sandbox: PaymentSandbox) -> None:
    """A shop that has read a paid status acts on it, even if it reads another status or order later."""
    project = project_of(payment_sandbox)
    entry = BookEntry("S-1", ["first", "second"], paid=1295)
    snapshot = BooksSnapshot([entry], {"first": ("new", "completed", "new"), "second": ("new",)})
    assert observe_signs([snapshot], project) == {LATER}
    other = BookEntry("S-1", ["third"], paid=1295)
    both = BooksSnapshot([entry, other], {**snapshot.statuses, "third": ("completed",)})
    assert observe_signs([both], project) == {LATER}


def test_signs_of_passing_variations_are_no_cause() -> None:
    """A cause is a sign of failing variations only, and differs from the unchanged test."""
    missed = "the shop reads 'completed', and does not call the purchase paid"
    failing = [run_signs("webhook:2:lost", missed, LATER), run_signs("action:1:month", missed, LATER)]
    assert (
        cause_of("payment-missed", failing, [run_signs("webhook:1:twice", LATER)], frozenset([LATER]))
        == missed
    )
    many = [run_signs(f"webhook:{number}:twice", missed) for number in range(1, 9)]
    assert cause_of("payment-missed", failing, many, frozenset([LATER])) == ""


def test_a_single_change_is_its_own_cause() -> None:
    """A single change needs no other cause, even at two steps."""
    assert cause_of("shipped-twice", [run_signs("webhook:1:twice"), run_signs("webhook:2:twice")], []) == ""


def test_signs_name_the_status_read_before_an_entry(payment_sandbox: PaymentSandbox) -> None:
    """Signs name the first status that led to an entry, and a refused change."""
    project = project_of(payment_sandbox)
    order_id = place(payment_sandbox)
    entry = BookEntry("S-1", [order_id], paid=1295, shipped=1295)
    early = BooksSnapshot([entry], {order_id: ("processing",)})
    end = BooksSnapshot([entry], {order_id: ("new", "completed")})
    assert observe_signs([early, end], project) == {EARLY, "the shop ships when it reads 'processing'"}
    assert observe_signs([BooksSnapshot([entry], {})], project) == {
        "the shop marks a purchase as paid without reading the order",
        "the shop ships without reading the order",
    }
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/refunds/"
    assert payment_sandbox.session.post(url, json={"amount": 1}, timeout=5).status_code == 409
    refused = "the shop continues although its call was refused"
    assert refused not in observe_signs([end], project), "the shop may repeat its call later"
    refunded = BooksSnapshot([replace(entry, refunded=1)], end.statuses)
    assert refused in observe_signs([refunded], project)
    assert observe_signs([BooksSnapshot([], {order_id: ("completed", "new")})], project) == {
        "the last status that the shop read is 'new'"
    }
    assert observe_signs([], project) == frozenset()


LINE = ("shop.py", "12")
ONE_MORE = "also in 1 other finding"


def finding_of(change: str, line: SourceLine | None = None, **more: Any) -> RehearsalFinding:
    """Return a finding about a missed payment."""
    problem = BookProblem(more.pop("kind", "payment-missed"), "it is not marked as paid")
    return RehearsalFinding(problem, parse_variation(change), change, line=line, **more)


@pytest.mark.parametrize(
    ("findings", "rows"),
    [
        pytest.param([("webhook:1:lost", LINE), ("read:1:unavailable", LINE)], [ONE_MORE], id="one line"),
        pytest.param([("webhook:1:lost", None), ("webhook:1:lost", None)], [ONE_MORE], id="one change"),
        pytest.param(
            [("webhook:1:lost", LINE), ("webhook:1:lost", ("shop.py", "9"))], ["", ""], id="two lines"
        ),
        pytest.param([("webhook:1:lost", None), ("read:1:unavailable", None)], ["", ""], id="two changes"),
    ],
)
def test_one_mistake_in_several_tests_is_one_row(
    findings: list[tuple[str, SourceLine | None]], rows: list[str]
) -> None:
    """The summary has one row for a mistake, which counts the findings of other tests that show it."""
    tests = [
        report_of(f"test_{number}", RehearsalOutcome([finding_of(*each)], 3), lambda each: "")
        for number, each in enumerate(findings)
    ]
    shown = rows_of(tests)
    assert [ONE_MORE if ONE_MORE in each else "" for each in shown] == rows


READ, LOST, ONCE, NOTICE = (
    "read-the-order",
    "after-a-lost-response",
    "do-everything-once",
    "learn-of-every-payment",
)


@pytest.mark.parametrize(
    ("change", "more", "section"),
    [
        ("action:1:never", {"kind": "shipped-unpaid"}, READ),
        ("webhook:1:twice", {"kind": "shipped-twice"}, ONCE),
        ("create:1:answer-lost", {"kind": "paid-twice"}, LOST),
        ("webhook:1:twice", {"kind": "payment-missed"}, ONCE),
        ("webhook:1:lost", {"kind": "payment-missed"}, NOTICE),
        ("webhook:1:twice", {"kind": "payment-missed", "cause": EARLY}, READ),
        ("webhook:1:twice", {"kind": "payment-missed", "cause": LATER}, NOTICE),
    ],
)
def test_advice_follows_the_cause(change: str, more: dict[str, Any], section: str) -> None:
    """The section is about the mistake that the change reveals, or about a cause that is a mistake."""
    report = report_of("test_a_sale", RehearsalOutcome([finding_of(change, **more)], 3), lambda each: "")
    assert report["findings"][0]["section"].endswith(f"#{section}")


@pytest.mark.parametrize(
    ("shown_by", "words"),
    [
        (["a"], "the smallest change that shows it: one click"),
        (["a", "b"], "the smallest change that shows it: one click; another variation shows it, too"),
        (["a", "b", "c"], "the smallest change that shows it: one click; 2 other variations show it, too"),
    ],
)
def test_other_variations_with_a_finding_are_counted(shown_by: list[str], words: str) -> None:
    """The text counts the other variations with a finding."""
    problem = BookProblem("shipped-twice", "it ships twice")
    finding = RehearsalFinding(problem, (), "one click", cause="a cause", shown_by=shown_by)
    report = report_of("test_a_sale", RehearsalOutcome([finding], 3), lambda each: "")
    assert f"  {words}" in lines_of(report)
