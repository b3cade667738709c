"""Messages of the helpers of a suite, progress, and stack traces of any language."""

from contextlib import closing

import pytest
import requests

from pytest_payment_sandbox.rehearsal.budget import Budget, format_duration
from pytest_payment_sandbox.rehearsal.driver import Progress
from pytest_payment_sandbox.rehearsal.helpers import Conversation, EndOfTest, HelperEndpoint, NoHelperAnswer
from pytest_payment_sandbox.rehearsal.report import shop_line


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
    with closing(HelperEndpoint(tests.begin_test, tests.end_test)) as endpoint:

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
    tests = RecordingTests()
    with closing(HelperEndpoint(tests.begin_test, tests.end_test)) as endpoint:
        response = requests.post(endpoint.url, data=text)
    assert response.status_code == 400
    assert words in response.json()["error"]["value"]


def test_progress_names_variations_and_remaining_time() -> None:
    """Progress counts variations and findings, but not after every variation."""
    lines: list[str] = []
    progress = Progress(lines.append)
    for _ in range(3):
        progress.record(1, Budget(0))
    assert lines == []
    assert progress.describe(65.0) == "3 variations tried, 3 findings, at most 1 min 5 s left"
    assert format_duration(-1.0) == "0 s"


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
