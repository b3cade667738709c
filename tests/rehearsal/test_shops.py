"""Rehearsals find the mistake planted in a shop with its cause, and accuse no right shop."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.rehearsal.running import RehearsalResult, run_suite


class Planted(NamedTuple):
    """A wrong shop, the variation that reveals its mistake, the kind and words of the finding."""

    shop: str
    variation: str
    kind: str
    words: str
    books: str = "books"

    @property
    def case(self) -> str:
        """The line that names it in the suite."""
        return f"{self.shop} {self.variation} wrong {self.books}"


MISSED = "does not mark it as paid"
PLANTED = (
    Planted("ShipsEarly", "action:2:opens-page", "paid-for-nothing", "no payment was made"),
    Planted("ShipsEarly", "action:2:fails", "shown-paid", "who has not paid: 'Thank you!'", "none"),
    Planted("FirstOnly", "action:2:fails-then-pays", "payment-missed", MISSED),
    Planted("FirstOnly", "action:2:fails-then-pays", "shown-differently", "We are waiting", "none"),
    Planted("ReturnBooks", "action:2:opens-page", "paid-for-nothing", "no payment was made"),
    Planted("Hasty", "change:1:voided", "shipped-unpaid", "but nothing was received for them"),
    Planted("Captures", "change:1:answer-lost", "captured-not-shipped", "its second capture for a failure"),
    Planted("SkipsCapture", "action:1:returns-first", "lapsed", "€0.00 was charged instead of €12.95"),
    Planted("Deposits", "change:1:answer-lost", "capture-missed", "books show no payment"),
    Planted("RetriesBlindly", "create:1:answer-lost", "review CTL-23", "created the order again"),
    Planted("ShipsAgain", "webhook:2:twice", "shipped-twice", "goods worth €25.90 were shipped"),
    Planted("RefundDone", "attempt:2:fails-later", "refunds-differ", "recorded refunds of €12.95"),
    Planted("RefundsAgain", "press:2:twice", "refunded-again", "€10.00 was refunded instead of €5.00"),
    Planted("LateTransfer", "action:1:too-late", "payment-missed", MISSED),
    Planted("NewestSale", "press:1:twice", "payment-missed", MISSED),
    Planted("Tabs", "action:1:other-tab", "unknown-money", "that the shop does not know"),
    Planted("StoresCvc", "unchanged", "secret", "the shop's stored data contains"),
    Planted("StoresCvc", "unchanged", "secret", "the shop's stored data contains", "none"),
    Planted("Logs", "unchanged", "secret", "the shop's log or output contains a key"),
    Planted("Talks", "read:1:unavailable-twice", "secret", "response to a webhook contains a key"),
    Planted("Charges", "attempt:2:charge-later", "charged-again", "instead of €38.85"),
    Planted("WithoutJob", "action:1:restarted", "payment-missed", MISSED),
    Planted("Queue", "webhook:2:lost-and-unread", "payment-missed", MISSED),
    Planted("Background", "read:1:unavailable-twice", "payment-missed", MISSED),
)
RIGHT = (
    "Shop",
    "Captures",
    "Deposits",
    "RefundDone",
    "LateTransfer",
    "StoresCvc",
    "Charges",
    "Queue",
    "Background",
)
LISTS_WHAT_REMAINS = """
import threading

import pytest


@pytest.fixture(scope="session", autouse=True)
def print_remaining(payment_sandbox_server):
    before = {thread.name for thread in threading.enumerate()}
    yield
    projects = [project.project_id for project in payment_sandbox_server.in_process.registry.all()]
    threads = {thread.name for thread in threading.enumerate()} - before - {"courier", "overdue"}
    print("REMAINING", len(projects), sorted(threads))
"""


def rehearse(folder: Path, cases: list[str], *options: str) -> RehearsalResult:
    """Rehearse shops, each with a variation or with all."""
    shutil.copyfile(Path(__file__).with_name("shops.py"), folder / "test_shop.py")
    return run_suite(folder, *options, CASES="\n".join(cases))


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The findings of each wrong shop with its variation."""
    result = rehearse(tmp_path_factory.mktemp("planted"), [each.case for each in PLANTED])
    assert len(result.tests) == len(PLANTED), result.text[-3000:]
    assert "no step for" not in result.text, result.text[-3000:]
    return {each["test"].partition("[")[2].rstrip("]"): each["findings"] for each in result.tests}


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.case)
def test_a_planted_mistake_is_found_with_its_cause(
    planted: Planted, findings: dict[str, list[dict[str, Any]]]
) -> None:
    """The first finding names the effect."""
    first = findings[planted.case][0]
    assert first["kind"] == planted.kind, findings[planted.case]
    assert planted.words in first["sentence"]


@pytest.mark.timeout(300)
def test_right_shops_survive_a_rehearsal(tmp_path: Path) -> None:
    """No right shop has a finding when it is rehearsed to the end; no project and no thread remains."""
    (tmp_path / "conftest.py").write_text(LISTS_WHAT_REMAINS)
    cases = [f"{shop} - right books" for shop in RIGHT] + ["Shop - right none", "LateTransfer - right none"]
    result = rehearse(tmp_path, cases, "--payment-rehearse", "-s")
    assert (result.code, result.findings, result.count("left")) == (0, [], 0), result.text[-3000:]
    assert [each["variations"] > 15 for each in result.tests] == [True] * len(cases)
    assert (
        f"{len(cases)} tests rehearsed in {result.count('variations')} variations: no findings" in result.text
    )
    assert "REMAINING 1 []" in result.text, result.text[-2000:]  # the first project of every server
