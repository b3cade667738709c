"""The cause of a finding is what all the variations share that show it."""

import pytest

from payment_sandbox import BookEntry, PaymentSandbox
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.causes import BooksSnapshot, RunSigns, Signs, find_cause, observe_signs
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step
from pytest_payment_sandbox.rehearsal.exploring import Exploration, RehearsalFinding
from pytest_payment_sandbox.rehearsal.report import lines_of, report_html, report_of
from tests.support.in_process import place

EARLY = "the shop marks a purchase as paid when it reads 'processing'"
LATER = "the shop marks a purchase as paid when it reads 'completed'"


def shown(name: str, *signs: str) -> RunSigns:
    """A variation with these signs."""
    changes = [parse_changed_step(part) for part in name.split("+")]
    return RunSigns(changes, frozenset(signs), {})


def cause(kind: str, failing: list[RunSigns], passing: list[RunSigns], usual: Signs = frozenset()) -> str:
    """The cause of a problem."""
    return find_cause(kind, failing, passing, usual)


def test_a_shop_that_acts_on_a_payment_in_progress_is_the_cause() -> None:
    """Not the change that shows it, though the shop does so in the test as it is, too."""
    failing = [shown("action:1:short", EARLY), shown("create:1:answer-lost", EARLY)]
    passing = [shown("webhook:1:twice", EARLY)]
    assert cause("paid-for-nothing", failing, passing, frozenset([EARLY])) == EARLY
    assert cause("paid-for-nothing", failing[:1], passing, frozenset([EARLY])) == EARLY
    assert cause("mailed-differently", failing[:1], passing, frozenset([EARLY])) == "", (
        "it says nothing of mails"
    )


def test_the_statuses_may_differ() -> None:
    """The shop has read another one each time, and none that means paid."""
    new = EARLY.replace("processing", "new")
    told = cause("paid-for-nothing", [shown("action:1:short", EARLY), shown("action:1:never", new)], [])
    assert told == "the shop marks a purchase as paid, or ships, before it has read a paid status"


def test_what_passing_variations_have_explains_nothing() -> None:
    """Only what those have that show the problem, and unlike the test as it is."""
    blind = "the shop reads 'completed', and does not call the purchase paid"
    failing = [shown("webhook:2:lost", blind, LATER), shown("action:1:month", blind, LATER)]
    assert cause("payment-missed", failing, [shown("webhook:1:twice", LATER)], frozenset([LATER])) == blind
    many = [shown(f"webhook:{number}:twice", blind) for number in range(1, 9)]
    assert cause("payment-missed", failing, many, frozenset([LATER])) == ""


def test_alike_variations_have_a_cause_in_common() -> None:
    """As the smallest family of them says."""
    twice, together = shown("webhook:2:twice"), shown("press:1:together")
    unpaid = [shown("action:1:fails"), shown("action:1:cancels")]
    both = "two of the shop's handlers run at the same moment"
    assert cause("shipped-twice", [together, shown("action:1:two-tabs")], []) == both
    assert cause("shipped-twice", [together, twice], []) == "the shop handles the same event twice"
    assert cause("shipped-twice", [together, shown("create:1:silent")], []) == ""
    assert cause("shipped-twice", [twice, shown("webhook:2:together")], []) == "", "the change says more"
    assert cause("paid-for-nothing", unpaid, []) == "the payment is missing or incomplete"


def test_a_single_change_is_its_own_cause() -> None:
    """As is the same change of two steps."""
    assert cause("shipped-twice", [shown("webhook:1:twice"), shown("webhook:2:twice")], []) == ""


def test_signs_are_what_the_shop_had_read_when_it_believed(payment_sandbox: PaymentSandbox) -> None:
    """The first time counts; a refused change is one, too."""
    project = payment_sandbox.server.project_of(payment_sandbox.api_key)
    assert project is not None
    order_id = place(payment_sandbox)
    entry = BookEntry("S-1", [order_id], paid=1295, shipped=1295)
    early = BooksSnapshot([entry], {order_id: "processing"})
    end = BooksSnapshot([entry], {order_id: "completed"})
    assert observe_signs([early, end], project) == {EARLY, "the shop ships when it reads 'processing'"}
    assert observe_signs([BooksSnapshot([entry], {})], project) == {
        "the shop marks a purchase as paid without reading the order",
        "the shop ships without reading the order",
    }
    url = f"{payment_sandbox.base_url}/v1/orders/{order_id}/refunds/"
    assert payment_sandbox.session.post(url, json={"amount": 1}, timeout=5).status_code == 409
    assert "the shop continues although its call was refused" in observe_signs([end], project)
    assert observe_signs([BooksSnapshot([], {order_id: "new"})], project) == {
        "the last status that the shop read is 'new'"
    }
    assert observe_signs([], project) == frozenset()


@pytest.mark.parametrize(
    ("shown_by", "words"),
    [
        (["a"], "the smallest change that shows it: one click"),
        (["a", "b"], "the smallest change that shows it: one click; another variation shows it, too"),
        (["a", "b", "c"], "the smallest change that shows it: one click; 2 other variations show it, too"),
    ],
)
def test_other_variations_with_a_finding_are_counted(shown_by: list[str], words: str) -> None:
    """If there are any, in the text and on the page."""
    problem = BookProblem("shipped-twice", "it ships twice")
    finding = RehearsalFinding(problem, (), "it ships twice", "", "", "a cause", "one click", shown_by)
    report = report_of("test_a_sale", Exploration([finding], 3, 0, []), lambda each: "")
    assert f"  {words}" in lines_of(report)
    assert f"<p>{words}</p>" in report_html([report])
