"""Rehearsals find the mistake planted in a shop with its cause, and accuse no right shop."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.rehearsal.running import RehearsalResult, run_suite

FOLDER = Path(__file__).parent


class Planted(NamedTuple):
    """A shop, the variation that reveals its mistake, and the kind, words and line of the finding."""

    shop: str
    variation: str
    kind: str
    words: str
    line: str


LEARNS = 'status = self.read_order(order_id)["status"]'
CREATES = "sale.orders.append(self.create_order"
CHARGES = 'order = self.create_order({"payment_method"'
MISSED = "does not mark it as paid"
READS_FAIL = "read:1:unavailable+read:2:unavailable"
PLANTED = (
    Planted("QueueShop", "webhook:2:lost+read:1:unavailable", "payment-missed", MISSED, LEARNS),
    Planted("BackgroundShop", READS_FAIL, "payment-missed", MISSED, LEARNS),
    Planted("OutboxShop", "create:1:answer-lost", "review CTL-23", "created the order again", CREATES),
    Planted("LambdaShop", "read:1:overtaken", "payment-missed", MISSED, LEARNS),
    Planted("SubscriptionShop", "attempt:2:charge-later", "charged-again", "instead of 2", CHARGES),
    Planted("DepositShop", "change:1:answer-lost", "capture-missed", "books show no payment", "where, {})"),
    Planted("RefundShop", "change:1:refused", "refunds-differ", "recorded refunds of €10.00", "refunds/"),
    Planted("PlainShop", READS_FAIL, "shown-differently", "We wait for your payment.", LEARNS),
    Planted("SqlShop", "action:1:opens-page", "paid-for-nothing", "when it reads 'processing'", LEARNS),
)
RIGHT = (
    "PlainShop webhook:1:twice",
    "PlainShop webhook:2:lost",
    "DetailsShop read:1:overtaken",
    "SqlShop webhook:1:twice",
    "DepositShop action:1:walks-away",
)


def rehearse(folder: Path, cases: list[str], *options: str) -> RehearsalResult:
    """Rehearse shops, each with a variation or with all."""
    shutil.copyfile(FOLDER / "planted_shops.py", folder / "shops.py")
    shutil.copyfile(FOLDER / "planted_suite.py", folder / "test_shop.py")
    return run_suite(folder, *options, CASES="\n".join(cases))


def by_case(result: RehearsalResult) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of each test."""
    return {each["test"].partition("[")[2].rstrip("]"): each["findings"] for each in result.tests}


def line_at(place: str) -> str:
    """Return the text of a line, such as ``shops.py:31``."""
    _, _, number = place.partition(":")
    return (FOLDER / "planted_shops.py").read_text().splitlines()[int(number) - 1] if number else ""


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The findings of each shop with its variation, and without its mistake."""
    cases = [f"{each.shop} {each.variation} {kind}" for each in PLANTED for kind in ("wrong", "right")]
    result = rehearse(tmp_path_factory.mktemp("planted"), [*cases, *(f"{each} right" for each in RIGHT)])
    assert "no step for" not in result.text, result.text[-3000:]
    return by_case(result)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.shop)
def test_a_planted_mistake_is_found_with_its_cause(
    planted: Planted, findings: dict[str, list[dict[str, Any]]]
) -> None:
    """The finding names the effect, and the line that decides; the same shop without it has no finding."""
    assert findings[f"{planted.shop}-{planted.variation}-right"] == []
    (finding,) = findings[f"{planted.shop}-{planted.variation}-wrong"]
    assert finding["kind"] == planted.kind
    assert planted.words in finding["sentence"]
    assert planted.line in line_at(finding["line"])


def test_right_shops_survive_a_search(tmp_path: Path) -> None:
    """Shops that read open orders in a job have no finding, and their handlers may run concurrently."""
    cases = [f"{shop} - right" for shop in ("BackgroundShop", "DetailsShop", "PlainShop", "SqlShop")]
    result = rehearse(tmp_path, cases, "--payment-rehearse", "--payment-rehearse-budget=4s")
    assert (result.code, result.findings) == (0, []), result.text[-3000:]
    assert "were skipped" not in result.text


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_shop_is_not_accused(case: str, findings: dict[str, list[dict[str, Any]]]) -> None:
    """A right shop has no finding."""
    assert findings[f"{case.replace(' ', '-')}-right"] == []
