"""Data from outside a rehearsal: helpers of a suite, external books, and remembered variations."""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
import requests

from payment_sandbox.operations.create_order import create_order
from payment_sandbox.scenarios.variation import READ, WEBHOOK, ShopCall, Step
from pytest_payment_sandbox.rehearsal.books import BookProblem
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


class RecordingTests:
    """Tests that request the same data from each helper."""

    __test__ = False

    def __init__(self) -> None:
        self.answers: list[object] = []

    def begin_test(self, project_id: str, test: str) -> str:
        if project_id != "p":
            raise ValueError(f"there is no project {project_id!r}")
        return test

    def end_test(self, project_id: str, ending: EndOfTest, conversation: Conversation) -> None:
        self.answers += [ending.failure, [name for name, _ in ending.jobs]]
        for request in (
            conversation.books,
            lambda: conversation.page("/thanks"),
            lambda: conversation.run_job("look"),
        ):
            try:
                self.answers.append(request())
            except (AssertionError, NoHelperAnswer) as error:
                self.answers.append(f"{type(error).__name__}: {error}")


def test_a_helper_answers_all_requests() -> None:
    """A helper returns the books, a page and the error of a job until no request is left."""
    tests = RecordingTests()
    with HelperEndpoint(tests) as endpoint:

        def post_message(**message: object) -> dict[str, object]:
            response: dict[str, object] = requests.post(
                endpoint.url, json={"project_id": "p", **message}
            ).json()
            return response

        assert post_message(begins="a sale") == {"test": "a sale"}
        assert post_message(ends="Error: no", books=True, jobs={"look": "PT1H"}) == {"ask": "books"}
        assert post_message(wrong="two mails") == {"ask": "page", "url": "/thanks"}
        assert post_message(page="Thank you") == {"ask": "job", "job": "look"}
        assert post_message(error="TypeError: x\n at y") == {"ask": None}
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
def test_an_invalid_helper_message_is_refused(text: str, words: str) -> None:
    """An invalid message of a helper gets an error in the usual form."""
    with HelperEndpoint(RecordingTests()) as endpoint:
        response = requests.post(endpoint.url, data=text)
    assert response.status_code == 400
    assert words in response.json()["error"]["value"]


NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_external_books_are_filtered_by_project() -> None:
    """External books of a running shop are filtered by the project's orders."""
    project = made_project(NOON)
    order = create_order(project, {"currency": "EUR", "amount": 1295, "client": {}})
    own_entry = f'{{"purchase": "S-2", "orders": ["{order.id}"], "paid": 5}}'
    text = f'[{{"purchase": "S-1", "orders": ["other"], "paid": 5}}, {own_entry}]'
    books = ExternalBooks(f"{PYTHON} -c 'import os; print(os.environ[\"BOOKS\"])'")
    (entry,) = books.read_entries(project, {"BOOKS": text})
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
def test_unreadable_books_are_explained(source: str, words: str) -> None:
    """The error names the source of the books and the reason."""
    with pytest.raises(BooksUnreadable) as error:
        ExternalBooks(source).read_entries(made_project(NOON), {})
    assert str(error.value).startswith(f"--books {source}: ")
    assert words in str(error.value)


def run_result(*problems: BookProblem, state: object = "paid", steps: tuple[Step, ...] = ()) -> RunResult:
    """Return the result of a run with these problems."""
    all_steps = steps or (Step(WEBHOOK, 1, "the webhook", ShopCall("", "")),)
    trace = tuple(f"{step.name} {step.label}" for step in all_steps)
    return RunResult(
        RunVerdict(list(problems), trace, (state,)), list(all_steps), list(TWICE), "line", "picture"
    )


def test_results_are_remembered() -> None:
    """A remembered result has its problems, trace and steps; it is dropped if the test has changed."""
    played: list[ChangedSteps] = []

    def play(variation: ChangedSteps) -> RunResult:
        played.append(variation)
        new = Step(READ, 2, "the shop's GET", ShopCall("GET", "/v1/orders/x/"))
        return run_result(BookProblem("paid-twice", "twice"), steps=(*run_result().steps, new))

    first = TriedVariations(run_result())
    first_result = first.run(TWICE, play)
    restored = TriedVariations(run_result(), first.results_json)
    assert restored.count == 1
    second_result = restored.run(TWICE, play)
    assert played == [TWICE]
    assert second_result.verdict.problems == first_result.verdict.problems
    assert second_result.verdict[1:3] == first_result.verdict[1:3]
    assert (list(second_result.steps), list(second_result.applied)) == (
        list(first_result.steps),
        list(first_result.applied),
    )
    assert (second_result.timeline, second_result.picture) == ("line", "picture")
    restored.run(LOST, play)
    assert played == [TWICE, LOST]
    assert TriedVariations(run_result(state="unpaid"), first.results_json).count == 0, (
        "the test has changed since"
    )


def test_progress_names_variations_and_remaining_time() -> None:
    """Progress counts variations and findings, but not after every variation."""
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
    """One run plays a variation of each test, and the first test to end does not block the others."""
    played: dict[str, list[ChangedSteps]] = {"one": [], "two": []}

    def exploration(name: str, count: int) -> Callable[[Callable[[ChangedSteps], RunResult]], Exploration]:
        def explore(play: Callable[[ChangedSteps], RunResult]) -> Exploration:
            try:
                for _ in range(count):
                    play(TWICE)
                    played[name].append(TWICE)
            except NoMoreRuns:
                return Exploration([], -1, 0, [])
            return Exploration([], count, 0, [])

        return explore

    batches = SharedRuns({"one": exploration("one", 1), "two": exploration("two", 9)})
    with batches:
        assert set(batches.next_batch()) == {"one", "two"}
        batches.answer("one", run_result())
        batches.answer("two", run_result())
        assert set(batches.next_batch()) == {"two"}
    assert {name: each.tried for name, each in batches.explored.items()} == {"one": 1, "two": -1}
    assert [len(each) for each in played.values()] == [1, 1]


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
def test_the_line_of_the_shop_is_the_innermost_one(text: str, line: str) -> None:
    """The shop's line is the innermost one outside libraries and tests."""
    assert shop_line(text) == line


def test_the_name_of_a_test_becomes_a_pattern_for_its_runner() -> None:
    """A test name is escaped for runners that read regular expressions."""
    assert pattern_of("sales > a sale (in part) #2") == r"a sale \(in part\)"
    assert pattern_of(r"Shop\SaleTest::testAll") == r"Shop\\SaleTest::testAll"


class MemoryCache:
    """A stand-in for pytest's cache, which stores JSON by key."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def get(self, key: str, default: object) -> object:
        return json.loads(self._texts[key]) if key in self._texts else default

    def set(self, key: str, value: object) -> None:
        self._texts[key] = json.dumps(value)


def test_pytest_resumes_a_stopped_rehearsal_on_request() -> None:
    """The cache holds the tried variations until all are tried; an option resumes with them."""
    cache, tried = MemoryCache(), TriedVariations(run_result())
    tried.run(TWICE, lambda variation: run_result(BookProblem("paid-twice", "twice")))
    PytestMemory(cache, resumes=False).store("a", Exploration([], 1, 0, []), tried, is_stopped=True)
    assert PytestMemory(cache, resumes=False).tried_variations("a") is None
    memory = PytestMemory(cache, resumes=True)
    assert TriedVariations(run_result(), memory.tried_variations("a")).count == 1
    assert (memory.tried_variations("b"), memory.failed_variations("a")) == (None, [])
    memory.store("a", Exploration([], 1, 0, []), tried, is_stopped=False)
    assert memory.tried_variations("a") is None
    PytestMemory(None, resumes=True).store("a", Exploration([], 1, 1, []), tried, is_stopped=False)
