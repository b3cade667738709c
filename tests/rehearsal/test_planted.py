"""Rehearsals find the mistake planted in a shop with its cause, and accuse no right shop."""

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.rehearsal.running import RehearsalResult, run_suite

FOLDER = Path(__file__).parent


class Planted(NamedTuple):
    """A shop, the variation that reveals its mistake, and the kind and words of the finding."""

    shop: str
    variation: str
    kind: str
    words: str


MISSED = "does not mark it as paid"
PLANTED = (
    Planted("QueueShop", "webhook:2:lost-and-unread", "payment-missed", MISSED),
    Planted("BackgroundShop", "read:1:unavailable-twice", "payment-missed", MISSED),
    Planted("OutboxShop", "create:1:answer-lost", "review CTL-23", "created the order again"),
    Planted("SubscriptionShop", "attempt:2:charge-later", "charged-again", "instead of €30.00"),
    Planted("DepositShop", "change:1:answer-lost", "capture-missed", "books show no payment"),
    Planted("RefundShop", "change:1:refused", "refunds-differ", "recorded refunds of €10.00"),
    Planted("PlainShop", "read:1:unavailable-twice", "shown-differently", "We wait for your payment."),
    Planted("SqlShop", "action:1:opens-page", "paid-for-nothing", "no payment was made"),
    Planted("ClickShop", "press:2:twice", "refunded-again", "€10.00 was refunded instead of €5.00"),
    Planted("ParcelShop", "change:1:answer-lost", "captured-not-shipped", "its second capture for a failure"),
    Planted("HastyShop", "change:1:voided", "shipped-unpaid", "but nothing was received for them"),
    Planted("TabsShop", "action:1:other-tab", "unknown-money", "that the shop does not know"),
    Planted("ForgetfulShop", "action:1:restarted", "payment-missed", MISSED),
    Planted("LoggingShop", "unchanged", "secret", "the shop's log or output contains a key"),
    Planted("TalkativeShop", "read:1:unavailable-twice", "secret", "response to a webhook contains a key"),
)


def rehearse(folder: Path, cases: list[str], *options: str) -> RehearsalResult:
    """Rehearse shops, each with a variation or with all."""
    shutil.copyfile(FOLDER / "planted_shops.py", folder / "shops.py")
    shutil.copyfile(FOLDER / "planted_suite.py", folder / "test_shop.py")
    return run_suite(folder, *options, CASES="\n".join(cases))


def by_case(result: RehearsalResult) -> dict[str, list[dict[str, Any]]]:
    """Return the findings of each test."""
    return {each["test"].partition("[")[2].rstrip("]"): each["findings"] for each in result.tests}


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The findings of each shop with its variation."""
    cases = [f"{each.shop} {each.variation} wrong" for each in PLANTED]
    result = rehearse(tmp_path_factory.mktemp("planted"), cases)
    assert "no step for" not in result.text, result.text[-3000:]
    return by_case(result)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda each: each.shop)
def test_a_planted_mistake_is_found_with_its_cause(
    planted: Planted, findings: dict[str, list[dict[str, Any]]]
) -> None:
    """The finding names the effect."""
    (finding,) = findings[f"{planted.shop}-{planted.variation}-wrong"]
    assert finding["kind"] == planted.kind
    assert planted.words in finding["sentence"]


@pytest.mark.timeout(300)
def test_right_shops_survive_a_rehearsal(tmp_path: Path) -> None:
    """No right shop has a finding when it is rehearsed to the end."""
    shops = {planted.shop for planted in PLANTED} | {"DetailsShop"}
    shops -= {"ClickShop", "TabsShop"}  # which keep no account of lost refunds and of double payments
    result = rehearse(tmp_path, [f"{shop} - right" for shop in sorted(shops)], "--payment-rehearse")
    assert len(result.tests) == len(shops)
    assert (result.code, result.findings) == (0, []), result.text[-3000:]
