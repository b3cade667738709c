"""The choice and order of variations, and the findings among their problems."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.variation import OrderAction, ShopCall, Step
from pytest_payment_sandbox.rehearsal.budget import Budget, format_duration
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps, variation_name
from pytest_payment_sandbox.rehearsal.driver import Progress, RehearsalDriver, RehearsalOutcome
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from pytest_payment_sandbox.rehearsal.planning import NO_HINTS, PAIRS_MAX, Hints, Plan, Run
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem
from tests.support.state_files import NOON

CREATE = Step("create", 1, "the shop's POST /v1/orders/", ShopCall("POST", "/v1/orders/"))
CAPTURE = Step("change", 1, "the shop's POST …/captures/", ShopCall("POST", "/v1/orders/x/captures/"))
REFUND = Step("change", 2, "the shop's POST …/refunds/", ShopCall("POST", "/v1/orders/x/refunds/"))


def webhook(number: int) -> Step:
    """Return a webhook step."""
    delivery = Delivery(str(number), "x", "http://shop.example/", "new", NOON)
    return Step("webhook", number, f"the webhook {number}", delivery)


READS = [Step("read", n, "the shop's GET", ShopCall("GET", "/v1/orders/x/")) for n in (1, 2)]
STEPS = [CREATE, CAPTURE, REFUND, webhook(1), webhook(2)]


class FunctionPlayer:
    """Plays the variations of one test by calling a function; replays call another function."""

    def __init__(
        self, run: Callable[[ChangedSteps], Run], replay: Callable[[ChangedSteps], Run] | None = None
    ) -> None:
        self._run, self._replay = run, replay or run

    def play(self, variation: ChangedSteps) -> Run:
        return self._run(variation)

    def replay(self, variation: ChangedSteps) -> Run:
        return self._replay(variation)


def drive(
    run: Callable[[ChangedSteps], Run],
    replay: Callable[[ChangedSteps], Run] | None = None,
    hints: Hints = NO_HINTS,
) -> RehearsalOutcome:
    """Rehearse one test whose runs come from a function."""
    plan = Plan(run(()), lambda: True, hints=hints)
    progress = Progress(lambda line: None)
    return RehearsalDriver("a test", plan, FunctionPlayer(run, replay), Budget(60), progress).rehearse()


class Shop:
    """A test whose variations show these problems and end in these states, or each in its own state."""

    def __init__(
        self,
        problems: Mapping[str, str] = {},
        end_states: Mapping[str, str] = {},
        steps: Callable[[str], list[Step]] = lambda name: STEPS,
    ) -> None:
        self.tried: list[str] = []
        self.replayed: list[str] = []
        self._problems, self._end_states, self._steps = problems, end_states, steps

    def run(self, variation: ChangedSteps) -> Run:
        self.tried.append(variation_name(variation))
        return self.result(variation)

    def replay(self, variation: ChangedSteps) -> Run:
        self.replayed.append(variation_name(variation))
        return self.result(variation)

    def result(self, variation: ChangedSteps) -> Run:
        name = variation_name(variation)
        problems = [BookProblem(kind, "wrong") for kind in self._problems.get(name, "").split(", ") if kind]
        return Run(RunVerdict(problems, (self._end_states.get(name, name),), ()), self._steps(name))

    @property
    def pairs(self) -> list[str]:
        """The pairs of changes that were tried."""
        return [name for name in self.tried if "+" in name]

    def explore(self, hints: Hints = NO_HINTS) -> RehearsalOutcome:
        return drive(self.run, self.replay, hints)


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
    """Each change is first tried at one step with each label, and costly changes come first."""
    shop = Shop(steps=lambda name: [*STEPS, CAPTURE._replace(number=3)])
    shop.explore()
    tried = shop.tried
    first_round = tried[1 : tried.index("change:3:unavailable")]
    assert {"change:1:unavailable", "change:2:answer-lost", "webhook:2:late"} <= {*first_round}
    assert not any(name.startswith("change:3") for name in first_round)
    assert tried.index("change:2:answer-lost") < tried.index("change:1:silent")


def test_changes_with_findings_in_other_tests_come_first() -> None:
    """A change with a finding in another test of the same run is tried first."""
    shop = Shop()
    shop.explore(Hints(fruitful=["late"]))
    assert shop.tried[1] == "webhook:1:late"


def test_pairs_are_varied() -> None:
    """Each pair of changes is tried once before any is repeated."""
    shop = Shop()
    shop.explore()
    pairs = [name.split("+") for name in shop.pairs]
    assert 0 < len(pairs) <= PAIRS_MAX
    kinds = [tuple(sorted(f"{part.split(':')[0]}:{part.split(':')[2]}" for part in pair)) for pair in pairs]
    assert len(set(kinds[:20])) == 20
    assert any(before == after for before, after in pairwise(sorted(kinds))), "some pairs are repeated later"


def test_only_one_of_several_changes_with_the_same_end_is_paired() -> None:
    """Of several changes that end in the same state, only one is paired."""
    end_states = {name: "same" for name in ("webhook:1:late", "webhook:1:swapped", "webhook:1:lost")}
    shop = Shop(end_states=end_states)
    exploration = shop.explore()
    paired = {part for name in shop.pairs for part in name.split("+")}
    assert len(paired & set(end_states)) == 1
    assert exploration.tried == len(shop.tried) - 1


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


def test_a_harmless_repetition_is_not_paired() -> None:
    """A repeated webhook without any effect needs no second change, but a lost one may need it."""
    shop = Shop(end_states=dict.fromkeys(("webhook:1:twice", "webhook:2:lost"), "unchanged"))
    shop.explore()
    paired = {part for name in shop.pairs for part in name.split("+")}
    assert "webhook:1:twice" in shop.tried
    assert "webhook:1:twice" not in paired
    assert "webhook:2:lost" in paired


def test_a_property_of_the_client_is_tried_at_one_call_of_each_kind() -> None:
    """Whether a call can wait forever is tried once for all calls with the same method and path."""
    shop = Shop(steps=lambda name: [CREATE, *READS])
    shop.explore()
    assert [name for name in shop.tried if name.endswith("silent") and "+" not in name] == [
        "create:1:silent",
        "read:1:silent",
    ]
    assert {"read:1:unavailable", "read:2:unavailable"} <= {*shop.tried}


def test_a_finding_is_replayed_before_it_is_reported() -> None:
    """Each finding is replayed once, and a problem that does not reproduce was only seen once."""
    shop = Shop({"webhook:1:twice": "shipped-twice", "webhook:2:late": "paid-twice"})
    assert [finding.name for finding in shop.explore().findings] == shop.replayed
    assert len(shop.replayed) == 2

    def replay(variation: ChangedSteps) -> Run:
        run = shop.result(variation)
        is_flaky = variation_name(variation) == "webhook:1:twice"
        return run._replace(verdict=RunVerdict([], (), ())) if is_flaky else run

    outcome = drive(shop.run, replay)
    assert [finding.name for finding in outcome.findings] == ["webhook:2:late"]
    assert outcome.seen_once == ["the webhook 1 arrived twice: wrong"]


def test_a_problem_of_the_unchanged_test_is_replayed_too() -> None:
    """A problem of the unchanged test is replayed; if it reproduces, variations do not report it again."""
    problems = {"unchanged": "review HOOK-09", "webhook:1:twice": "review HOOK-09"}
    shop = Shop(problems)
    assert [finding.name for finding in shop.explore().findings] == ["unchanged"]
    assert shop.replayed == ["unchanged"]
    harmless = Shop()
    outcome = drive(shop.run, harmless.replay)
    assert (outcome.findings, outcome.seen_once[0]) == ([], "without any change: wrong")


def test_a_finding_of_the_review_does_not_hide_pairs() -> None:
    """A change with a finding of the review is paired, unlike a change with another finding."""
    for kind, is_paired in (("review HOOK-08", True), ("shipped-twice", False)):
        shop = Shop({"webhook:1:lost": kind})
        shop.explore()
        assert any("webhook:1:lost" in name.split("+") for name in shop.pairs) is is_paired


def test_a_known_finding_of_the_review_does_not_hide_a_problem_of_the_same_run() -> None:
    """A run whose finding of the review is known can have another finding."""
    kinds = dict.fromkeys(("webhook:1:lost", "webhook:1:late"), "review HOOK-08")
    shop = Shop({**kinds, "webhook:2:late": "shipped-unpaid, review HOOK-08"})
    assert [(finding.name, finding.problem.kind) for finding in shop.explore().findings] == [
        ("webhook:1:lost", "review HOOK-08"),
        ("webhook:2:late", "shipped-unpaid"),
    ]


def test_a_change_to_a_step_that_another_change_removes_is_not_paired() -> None:
    """Two changes are paired only if each leaves the step of the other one in place."""
    shop = Shop(steps=lambda name: STEPS[:-1] if "webhook:1:lost" in name else STEPS)
    shop.explore()
    assert any("webhook:1:lost" in name for name in shop.pairs)
    assert not any("webhook:1:lost" in name and "webhook:2" in name for name in shop.pairs)


def test_a_pair_may_change_a_step_caused_by_its_first_change() -> None:
    """A pair can change a step that occurs only because of its first change, and such pairs come early."""
    pair = "webhook:1:lost+read:2:unavailable"
    steps = [webhook(1), *READS]
    shop = Shop({pair: "lost"}, steps=lambda name: steps if "webhook:1:lost" in name else steps[:-1])
    assert [finding.name for finding in shop.explore().findings] == [pair]
    assert shop.pairs.index(pair) < len(shop.pairs) / 2


def test_the_end_of_the_budget_leaves_variations_out() -> None:
    """Variations that exceed the budget are counted."""
    shop = Shop()
    remaining = iter([True, True])
    plan = Plan(shop.run(()), lambda: next(remaining, False))
    player = FunctionPlayer(shop.run)
    outcome = RehearsalDriver("a test", plan, player, Budget(60), Progress(lambda line: None)).rehearse()
    assert outcome.tried == 2
    assert outcome.untried > 10


def test_a_lapse_does_not_hide_a_decline() -> None:
    """The same problem after an authorization has lapsed has another cause than after a decline."""
    act = OrderAction(
        Action("customer", "pay"),
        is_hosted=True,
        has_return=False,
        has_earlier_attempts=False,
        has_authorization=True,
    )
    changes = ("action:1:fails", "action:1:cancels", "action:1:lapses")
    step = Step("action", 1, "the customer's payment", act)
    shop = Shop(dict.fromkeys(changes, "payment-missed"), steps=lambda name: [step])
    assert {finding.name for finding in shop.explore().findings} == {"action:1:fails", "action:1:lapses"}


def test_no_run_takes_longer_than_the_budget() -> None:
    """A run inherits the whole remaining budget; a replay gets its time even at the end of the budget."""
    assert Budget(10).for_run(0.1, must_end=False).remaining_seconds <= 10
    assert Budget(600).for_run(1, must_end=False).remaining_seconds <= 16
    assert not Budget(600).for_run(1, must_end=False).is_short
    assert 10 < Budget(60).share(10).for_run(1, must_end=False).remaining_seconds <= 16
    assert Budget(0).for_run(0.5, must_end=False).remaining_seconds == 0
    assert Budget(0).for_run(0.5, must_end=False).is_short
    assert Budget(0).for_run(0.5, must_end=False).missing_seconds == 14, "the run may unwind for so long"
    assert Budget(1).for_run(0.5, must_end=True).remaining_seconds <= 3
    assert not Budget(1).for_run(0.5, must_end=True).is_short
    assert not Budget(0).has_time()
    assert Budget(60).share(3).remaining_seconds <= 20


def test_a_run_that_is_cut_off_has_no_finding() -> None:
    """A run that the end of the budget has cut off counts as not tried."""

    class LatePlayer:
        def play(self, variation: ChangedSteps) -> None:
            return None

        def replay(self, variation: ChangedSteps) -> Run:
            raise AssertionError(variation)

    plan = Plan(Shop().run(()), lambda: True)
    progress = Progress(lambda line: None)
    outcome = RehearsalDriver("a test", plan, LatePlayer(), Budget(60), progress).rehearse()
    assert (outcome.findings, outcome.tried) == ([], 0)
    assert outcome.untried > 3


def test_progress_names_variations_and_remaining_time() -> None:
    """Progress counts variations and findings, but not after every variation."""
    lines: list[str] = []
    progress = Progress(lines.append)
    for _ in range(3):
        progress.record(1, Budget(0), "a test")
    assert lines == []
    assert progress.describe(65.0) == "3 variations tried, 3 findings, at most 1 min 5 s left"
    assert format_duration(-1.0) == "0 s"
