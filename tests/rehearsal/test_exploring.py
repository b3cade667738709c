"""The choice and order of variations, and the findings among their problems."""

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
    """Return a webhook step."""
    delivery = Delivery(str(number), "x", "http://shop.example/", "new", NOON)
    return Step("webhook", number, f"the webhook {number}", delivery)


STEPS = [CREATE, CAPTURE, REFUND, webhook(1), webhook(2)]


class Shop:
    """A test whose variations show these problems and end in these states, or each in its own state."""

    def __init__(self, problems: Mapping[str, str] = {}, end_states: Mapping[str, str] = {}) -> None:
        self.tried: list[str] = []
        self._problems, self._end_states = problems, end_states

    def run(self, variation: ChangedSteps) -> RunResult:
        name = variation_name(variation)
        self.tried.append(name)
        problems = [BookProblem(self._problems[name], "wrong")] if name in self._problems else []
        return RunResult(RunVerdict(problems, (self._end_states.get(name, name),), ()), STEPS, [], "", "")

    def explore(self) -> Exploration:
        return Explorer(self.run, lambda: True).explore(self.run(()))


def findings(problems: Mapping[str, str]) -> Sequence[str]:
    """Return the variations of the findings."""
    return [finding.name for finding in Shop(problems).explore().findings]


def test_a_second_cause_of_the_same_problem_is_reported() -> None:
    """The same problem after a change to another call is another finding."""
    twice = {
        "create:1:answer-lost": "paid-twice",
        "create:1:unavailable": "paid-twice",
        "change:1:answer-lost": "paid-twice",
        "change:2:answer-lost": "paid-twice",
    }
    assert findings(twice) == ["create:1:unavailable", "change:1:answer-lost", "change:2:answer-lost"]


def test_a_problem_of_several_webhooks_is_one_finding() -> None:
    """A problem is reported as one finding, whichever webhook or call reveals it."""
    assert findings({f"webhook:{n}:{how}": "shipped-twice" for n in (1, 2) for how in ("twice", "late")}) == [
        "webhook:1:twice"
    ]
    assert findings({"create:1:silent": "waits", "change:1:silent": "waits"}) == ["create:1:silent"]


def test_each_change_is_tried_once_before_any_is_repeated() -> None:
    """Each change is first tried at one step of its kind, and costly changes come first."""
    shop = Shop()
    shop.explore()
    changes = [name.partition(":")[2].partition(":")[2] for name in shop.tried if name and "+" not in name]
    kinds = [(name.partition(":")[0], how) for name, how in zip(shop.tried[1:], changes, strict=False)]
    first_round = kinds.index(("webhook", "twice"), kinds.index(("webhook", "twice")) + 1)
    assert len(set(kinds[:first_round])) == first_round
    assert shop.tried.index("change:1:answer-lost") < shop.tried.index("change:1:silent")


def test_changes_with_findings_in_other_tests_come_first() -> None:
    """A change with a finding in another test of the same run is tried first."""
    shop = Shop()
    Explorer(shop.run, lambda: True, fruitful=["late"]).explore(shop.run(()))
    assert shop.tried[1] == "webhook:1:late"


def test_pairs_are_varied() -> None:
    """Each pair of changes is tried once before any is repeated."""
    shop = Shop()
    shop.explore()
    pairs = [name.split("+") for name in shop.tried if "+" in name]
    assert 0 < len(pairs) <= PAIRS_MAX
    kinds = [tuple(sorted(f"{part.split(':')[0]}:{part.split(':')[2]}" for part in pair)) for pair in pairs]
    assert len(set(kinds[:20])) == 20
    assert any(before == after for before, after in pairwise(sorted(kinds))), "some pairs are repeated later"


def test_only_one_of_several_changes_with_the_same_end_is_paired() -> None:
    """Of several changes that end in the same state, only one is paired."""
    end_states = {name: "same" for name in ("webhook:1:late", "webhook:1:swapped", "webhook:1:lost")}
    shop = Shop(end_states=end_states)
    exploration = shop.explore()
    paired = {part for name in shop.tried if "+" in name for part in name.split("+")}
    assert len(paired & set(end_states)) == 1
    assert exploration.repeated == 2
    assert exploration.tried == len(shop.tried) - 1


def test_a_late_webhook_stands_for_a_refused_one() -> None:
    """A refused webhook is not tried unless the late one causes a problem."""
    shop = Shop({"webhook:2:late": "believes"})
    shop.explore()
    assert "webhook:1:refused" not in shop.tried
    assert "webhook:2:refused" in shop.tried


def test_the_last_webhook_is_not_swapped() -> None:
    """The last webhook is not swapped, because no other webhook follows."""
    shop = Shop()
    shop.explore()
    assert "webhook:1:swapped" in shop.tried
    assert "webhook:2:swapped" not in shop.tried


def test_two_lost_webhooks_are_paired_despite_their_equal_ends() -> None:
    """Two lost webhooks are paired, because either can make up for the other."""
    end_states = {name: "read later" for name in ("webhook:1:lost", "webhook:2:lost")}
    shop = Shop({"webhook:1:lost+webhook:2:lost": "believes"}, end_states)
    (finding,) = shop.explore().findings
    assert finding.name == "webhook:1:lost+webhook:2:lost"
