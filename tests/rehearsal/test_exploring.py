"""Which variations are tried, and which of their problems are findings."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.variation import ShopCall, Step
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.exploring import (
    PAIRS_MAX,
    ChangedSteps,
    Exploration,
    Explorer,
    RunResult,
    variation_name,
)
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from tests.support.state_files import NOON

CREATE = Step("create", 1, "the shop's POST /v1/orders/", ShopCall("POST", "/v1/orders/"))
CAPTURE = Step("change", 1, "the shop's POST …/captures/", ShopCall("POST", "/v1/orders/x/captures/"))
REFUND = Step("change", 2, "the shop's POST …/refunds/", ShopCall("POST", "/v1/orders/x/refunds/"))


def webhook(number: int) -> Step:
    """A webhook of the test."""
    delivery = Delivery(str(number), "x", "http://shop.example/", "new", NOON)
    return Step("webhook", number, f"the webhook {number}", delivery)


STEPS = [CREATE, CAPTURE, REFUND, webhook(1), webhook(2)]


class Shop:
    """A test of a shop whose variations show these problems; each comes to an end of its own, or to these."""

    def __init__(self, problems: Mapping[str, str] = {}, ends: Mapping[str, str] = {}) -> None:
        self.tried: list[str] = []
        self._problems, self._ends = problems, ends

    def run(self, variation: ChangedSteps) -> RunResult:
        """One run."""
        name = variation_name(variation)
        self.tried.append(name)
        problems = [BookProblem(self._problems[name], "wrong")] if name in self._problems else []
        return RunResult(RunVerdict(problems, (self._ends.get(name, name),), ()), STEPS, [], "", "")

    def explored(self) -> Exploration:
        """All that is tried."""
        return Explorer(self.run, lambda: True).explore(self.run(()))


def findings(problems: Mapping[str, str]) -> Sequence[str]:
    """The variations of the findings."""
    return [finding.name for finding in Shop(problems).explored().findings]


def test_a_second_cause_of_the_same_problem_is_told() -> None:
    """A double charge stands beside a double creation, if other calls bring them about."""
    twice = {
        "create:1:answer-lost": "paid-twice",
        "create:1:unavailable": "paid-twice",
        "change:1:answer-lost": "paid-twice",
        "change:2:answer-lost": "paid-twice",
    }
    assert findings(twice) == ["create:1:unavailable", "change:1:answer-lost", "change:2:answer-lost"]


def test_what_a_shop_makes_of_webhooks_is_told_once() -> None:
    """Whichever of them it was, and however it came."""
    assert findings({f"webhook:{n}:{how}": "shipped-twice" for n in (1, 2) for how in ("twice", "late")}) == [
        "webhook:1:twice"
    ]
    assert findings({"create:1:silent": "waits", "change:1:silent": "waits"}) == ["create:1:silent"]


def test_each_change_is_tried_once_before_any_is_tried_again() -> None:
    """The costliest first, at the first step of each kind."""
    shop = Shop()
    shop.explored()
    changes = [name.partition(":")[2].partition(":")[2] for name in shop.tried if name and "+" not in name]
    kinds = [(name.partition(":")[0], how) for name, how in zip(shop.tried[1:], changes, strict=False)]
    once = kinds.index(("webhook", "twice"), kinds.index(("webhook", "twice")) + 1)
    assert len(set(kinds[:once])) == once
    assert shop.tried.index("change:1:answer-lost") < shop.tried.index("change:1:silent")


def test_what_has_shown_something_elsewhere_is_tried_first() -> None:
    """In another test of the same run."""
    shop = Shop()
    Explorer(shop.run, lambda: True, fruitful=["late"]).explore(shop.run(()))
    assert shop.tried[1] == "webhook:1:late"


def test_pairs_are_varied() -> None:
    """Each two changes come once before any two come again."""
    shop = Shop()
    shop.explored()
    pairs = [name.split("+") for name in shop.tried if "+" in name]
    assert 0 < len(pairs) <= PAIRS_MAX
    kinds = [tuple(sorted(f"{part.split(':')[0]}:{part.split(':')[2]}" for part in pair)) for pair in pairs]
    assert len(set(kinds[:20])) == 20
    assert any(before == after for before, after in pairwise(sorted(kinds))), "some come again, later"


def test_only_one_change_of_those_with_the_same_end_is_paired() -> None:
    """The others would come to the same again."""
    ends = {name: "same" for name in ("webhook:1:late", "webhook:1:swapped", "webhook:1:lost")}
    shop = Shop(ends=ends)
    explored = shop.explored()
    paired = {part for name in shop.tried if "+" in name for part in name.split("+")}
    assert len(paired & set(ends)) == 1
    assert explored.repeated == 2
    assert explored.tried == len(shop.tried) - 1


def test_a_webhook_that_is_late_says_what_a_retried_one_does() -> None:
    """Unless it does harm: then the shorter delay may do none, or another one."""
    shop = Shop({"webhook:2:late": "believes"})
    shop.explored()
    assert "webhook:1:refused" not in shop.tried
    assert "webhook:2:refused" in shop.tried


def test_the_last_webhook_is_not_swapped() -> None:
    """Nothing comes after it, so it would only be late."""
    shop = Shop()
    shop.explored()
    assert "webhook:1:swapped" in shop.tried
    assert "webhook:2:swapped" not in shop.tried


def test_two_lost_webhooks_are_paired_although_each_comes_to_the_same() -> None:
    """One makes up for the other, so only both do harm."""
    ends = {name: "read later" for name in ("webhook:1:lost", "webhook:2:lost")}
    shop = Shop({"webhook:1:lost+webhook:2:lost": "believes"}, ends)
    (finding,) = shop.explored().findings
    assert finding.name == "webhook:1:lost+webhook:2:lost"
