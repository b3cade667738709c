"""What a rehearsal learns from others: the helpers of a suite, books elsewhere, what it remembers itself."""

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent

import pytest
import requests

from payment_sandbox.operations.create_order import create_order
from payment_sandbox.scenarios.variation import READ, WEBHOOK, ShopCall, Step
from payment_sandbox.web.docs.library import read_source
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.buying import read_buy_script
from pytest_payment_sandbox.rehearsal.exploring import (
    ChangedSteps,
    Exploration,
    RunResult,
    parse_variation,
)
from pytest_payment_sandbox.rehearsal.helpers import Conversation, EndOfTest, HelperEndpoint, NoHelperAnswer
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from pytest_payment_sandbox.rehearsal.outside import BooksUnreadable, ExternalBooks
from pytest_payment_sandbox.rehearsal.progress import Progress, format_duration
from pytest_payment_sandbox.rehearsal.remembering import PytestMemory, TriedVariations
from pytest_payment_sandbox.rehearsal.report import shop_line
from pytest_payment_sandbox.rehearsal.suites import NoMoreRuns, SharedRuns, pattern_of
from tests.support.projects import made_project

TWICE = parse_variation("webhook:1:twice")
LOST = parse_variation("webhook:1:lost")
PYTHON = sys.executable


class TestsOfARun:
    """Tests that ask each helper for the same things."""

    __test__ = False

    def __init__(self) -> None:
        self.answers: list[object] = []

    def begin_test(self, project_id: str, test: str) -> str:
        if project_id != "p":
            raise ValueError(f"there is no project {project_id!r}")
        return test

    def end_test(self, project_id: str, ending: EndOfTest, conversation: Conversation) -> None:
        self.answers += [ending.failure, [name for name, _ in ending.jobs]]
        for ask in (
            conversation.books,
            lambda: conversation.page("/thanks"),
            lambda: conversation.run_job("look"),
        ):
            try:
                self.answers.append(ask())
            except (AssertionError, NoHelperAnswer) as wrong:
                self.answers.append(f"{type(wrong).__name__}: {wrong}")


def test_a_helper_answers_until_nothing_is_asked() -> None:
    """With the books, a page, and a job that fails."""
    tests = TestsOfARun()
    with HelperEndpoint(tests) as endpoint:

        def say(**message: object) -> dict[str, object]:
            answer: dict[str, object] = requests.post(
                endpoint.url, json={"project_id": "p", **message}
            ).json()
            return answer

        assert say(begins="a sale") == {"test": "a sale"}
        assert say(ends="Error: no", books=True, jobs={"look": "PT1H"}) == {"ask": "books"}
        assert say(wrong="two mails") == {"ask": "page", "url": "/thanks"}
        assert say(page="Thank you") == {"ask": "job", "job": "look"}
        assert say(error="TypeError: x\n at y") == {"ask": None}
    assert tests.answers == ["Error: no", ["look"], "AssertionError: two mails", "Thank you", "TypeError: x"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nothing", "expected JSON with project_id"),
        ("[]", "expected JSON with project_id"),
        ('{"project_id": "q", "begins": "a"}', "there is no project 'q'"),
        ('{"project_id": "p", "books": []}', "no test of project 'p' has ended"),
        ('{"project_id": "p", "ends": null, "jobs": {"look": "hourly"}}', "hourly"),
    ],
)
def test_a_helper_is_told_what_was_wrong(text: str, words: str) -> None:
    """In the form of all errors."""
    with HelperEndpoint(TestsOfARun()) as endpoint:
        answer = requests.post(endpoint.url, data=text)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["value"]


NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_books_elsewhere_are_those_of_the_project() -> None:
    """A shop that runs on has those of other runs, too."""
    project = made_project(NOON)
    order = create_order(project, {"currency": "EUR", "amount": 1295, "client": {}})
    own = f'{{"purchase": "S-2", "orders": ["{order.id}"], "paid": 5}}'
    text = f'[{{"purchase": "S-1", "orders": ["other"], "paid": 5}}, {own}]'
    books = ExternalBooks(f"{PYTHON} -c 'import os; print(os.environ[\"TOLD\"])'")
    (entry,) = books.read_entries(project, {"TOLD": text})
    assert (entry.purchase, entry.paid) == ("S-2", 5)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("no-such-program", "cannot run 'no-such-program': No such file"),
        (f"{PYTHON} -c 'raise SystemExit(3)'", "exit code 3"),
        (f"{PYTHON} -c 'print(7)'", "expected a JSON list of entries"),
        (f"{PYTHON} -c 'print([1])'", "payment_books must return entries with purchase, orders"),
        ("http://127.0.0.1:1/books", "no response"),
    ],
)
def test_books_that_cannot_be_read_say_why(source: str, words: str) -> None:
    """And where."""
    with pytest.raises(BooksUnreadable) as wrong:
        ExternalBooks(source).read_entries(made_project(NOON), {})
    assert str(wrong.value).startswith(f"--books {source}: ")
    assert words in str(wrong.value)


def ran(*problems: BookProblem, state: object = "paid", steps: tuple[Step, ...] = ()) -> RunResult:
    """A run with these problems."""
    shown = steps or (Step(WEBHOOK, 1, "the webhook", ShopCall("", "")),)
    trace = tuple(f"{step.name} {step.label}" for step in shown)
    return RunResult(RunVerdict(list(problems), trace, (state,)), list(shown), list(TWICE), "line", "picture")


def test_what_was_tried_is_remembered() -> None:
    """With all that the next rehearsal needs: problems, whether it ended alike, and new steps."""
    played: list[ChangedSteps] = []

    def play(variation: ChangedSteps) -> RunResult:
        played.append(variation)
        new = Step(READ, 2, "the shop's GET", ShopCall("GET", "/v1/orders/x/"))
        return ran(BookProblem("paid-twice", "twice"), steps=(*ran().steps, new))

    first = TriedVariations(ran())
    shown = first.run(TWICE, play)
    again = TriedVariations(ran(), first.results_json)
    assert again.count == 1
    known = again.run(TWICE, play)
    assert played == [TWICE]
    assert known.verdict.problems == shown.verdict.problems
    assert known.verdict[1:3] == shown.verdict[1:3]
    assert (list(known.steps), list(known.applied)) == (list(shown.steps), list(shown.applied))
    assert (known.timeline, known.picture) == ("line", "picture")
    again.run(LOST, play)
    assert played == [TWICE, LOST]
    assert TriedVariations(ran(state="unpaid"), first.results_json).count == 0, "the test has changed since"


def test_progress_says_what_was_tried_and_how_much_time_is_left() -> None:
    """Not for every variation."""
    lines: list[str] = []
    progress = Progress(lines.append)
    for _ in range(3):
        progress.record(1, 0.0)
    assert lines == []
    assert progress.describe(65.0) == "3 variations tried, 1 finding, at most 1 min 5 s left"
    assert format_duration(-1.0) == "0 s"
    Progress(lines.append, is_quiet=True).write_line("something")
    assert lines == []


def test_tests_share_runs_and_stop_together() -> None:
    """One run plays a variation of each; the one that ends first does not hold up the others."""
    seen: dict[str, list[ChangedSteps]] = {"one": [], "two": []}

    def exploration(name: str, count: int) -> Callable[[Callable[[ChangedSteps], RunResult]], Exploration]:
        def explore(play: Callable[[ChangedSteps], RunResult]) -> Exploration:
            try:
                for _ in range(count):
                    play(TWICE)
                    seen[name].append(TWICE)
            except NoMoreRuns:
                return Exploration([], -1, 0, [])
            return Exploration([], count, 0, [])

        return explore

    batches = SharedRuns({"one": exploration("one", 1), "two": exploration("two", 9)})
    with batches:
        assert set(batches.next_batch()) == {"one", "two"}
        batches.answer("one", ran())
        batches.answer("two", ran())
        assert set(batches.next_batch()) == {"two"}
    assert {name: each.tried for name, each in batches.explored.items()} == {"one": 1, "two": -1}
    assert [len(each) for each in seen.values()] == [1, 1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Error: no\n at f (file:///a/shop.mjs:17:29)\n at g (/a/node_modules/x.js:1:1)", "/a/shop.mjs:17"),
        ("RuntimeException: lost in /a/Shop.php:12\n#0 /a/ShopTest.php(30): f()", "/a/Shop.php:12"),
        ("#0 /a/vendor/x.php(1): f()\n#1 /a/Shop.php(4): g()", "/a/Shop.php:4"),
        ('File "/a/app.py", line 7, in buy\nFile "/a/shop.py", line 9, in look', "/a/shop.py:9"),
        ("nothing at http://127.0.0.1:8080/a.js:3", ""),
        ("at /a/shop.test.mjs:3:1", ""),
    ],
)
def test_the_line_of_the_shop_is_the_innermost_of_its_own(text: str, line: str) -> None:
    """No library's, and no test's."""
    assert shop_line(text) == line


def test_the_name_of_a_test_becomes_a_pattern_for_its_runner() -> None:
    """Runners read it as a regular expression."""
    assert pattern_of("sales > a sale (in part) #2") == r"a sale \(in part\)"
    assert pattern_of(r"Shop\SaleTest::testAll") == r"Shop\\SaleTest::testAll"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps:\n- click: a\n", ":1: expected open, steps"),
        ("open: /\nsteps: []\n", ":2: expected a list of steps"),
        (
            "open: /\nsteps:\n- click: a\n- press: b\n",
            ":4: step 2: expected one of click, fill (requires with)",
        ),
        ("open: /\nsteps:\n- fill: a\n", ":3: step 1: expected one of click"),
        ("open: [\n", "is not valid YAML"),
    ],
)
def test_steps_that_are_wrong_are_placed(tmp_path: Path, text: str, words: str) -> None:
    """With the line, and what was expected."""
    (tmp_path / "buy.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"buy\.yaml") as wrong:
        read_buy_script(tmp_path / "buy.yaml")
    assert words in str(wrong.value)


def test_the_steps_in_the_documentation_are_right(tmp_path: Path) -> None:
    """So that a new user can begin with them."""
    example = re.search(r"(?m)^    # buy\.yaml\n(?:    .*\n)+", read_source("rehearsal"))
    assert example is not None
    (tmp_path / "buy.yaml").write_text(dedent(example[0]))
    buy = read_buy_script(tmp_path / "buy.yaml")
    assert [(step.action, step.selector, step.value) for step in buy.steps] == [
        ("fill", "#email", "jane@shop.example"),
        ("click", "text=Buy now", ""),
    ]
    assert (buy.first_page, buy.expected_return) == ("/socks", "text=Thank you")


class Cache:
    """What pytest remembers between sessions: JSON, by a key."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, key: str, default: object) -> object:
        return json.loads(self._texts[key]) if key in self._texts else default

    def set(self, key: str, value: object) -> None:
        self._texts[key] = json.dumps(value)


def test_pytest_goes_on_where_it_was_stopped_if_it_is_asked_to() -> None:
    """By its cache; once all is tried, there is nothing to go on with."""
    cache, tried = Cache(), TriedVariations(ran())
    tried.run(TWICE, lambda variation: ran(BookProblem("paid-twice", "twice")))
    PytestMemory(cache, resumes=False).store("a", Exploration([], 1, 0, []), tried, is_stopped=True)
    assert PytestMemory(cache, resumes=False).tried_variations("a") is None
    memory = PytestMemory(cache, resumes=True)
    assert TriedVariations(ran(), memory.tried_variations("a")).count == 1
    assert (memory.tried_variations("b"), memory.failed_variations("a")) == (None, [])
    memory.store("a", Exploration([], 1, 0, []), tried, is_stopped=False)
    assert memory.tried_variations("a") is None
    PytestMemory(None, resumes=True).store("a", Exploration([], 1, 1, []), tried, is_stopped=False)
