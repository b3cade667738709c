"""Serves the helpers of a suite in another language.

A helper sends JSON to the address in ``SANDBOX_REHEARSAL``. With ``begins``, the helper names the test of a
project, and with ``ends``, it reports the result of the test. While the test is judged, each response has a
question about the shop's books, pages or jobs; the helper sends answers until a response has no question.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.client.receiver import BAD_REQUEST, OK, WebhookEndpoint
from payment_sandbox.kernel.times import Period
from payment_sandbox.scenarios.variation import ShopCall
from payment_sandbox.serving.threads import start
from pytest_payment_sandbox.rehearsal.places import SourceLine, shop_lines

ANSWER_SECONDS_MAX: Final = 30.0  # time limit for a helper's answer to a question
JUDGE_SECONDS_MAX: Final = 85.0  # time limit for the next question or the verdict; PHP waits for 90
EXPECTED_MESSAGE: Final = "expected JSON with project_id, and begins, ends, books, page, job, wrong or error"

Message = dict[str, Any]
"""A JSON message from or to a helper."""


class NoHelperAnswer(Exception):
    """A helper did not answer a question, or reported an error."""


class EndOfTest(NamedTuple):
    """The end of a test: its failure, if any, and the kinds of questions that the helper can answer."""

    failure: str | None
    stack: str
    has_books: bool
    has_pages: bool
    jobs: Sequence[tuple[str, Period]]  # the shop's jobs, which run after the end of the test
    calls: Sequence[tuple[ShopCall, Sequence[SourceLine]]]  # the shop's calls, with its lines

    @classmethod
    def parse(cls, message: Message) -> "EndOfTest":
        """Parse the message from a helper at the end of a test.

        Raises:
            ValueError: the period of a job is invalid.
        """
        failure, jobs = message["ends"], message.get("jobs") or {}
        return cls(
            None if failure is None else str(failure),
            str(message.get("stack") or ""),
            bool(message.get("books")),
            bool(message.get("pages")),
            [(str(name), Period.parse(str(period))) for name, period in dict(jobs).items()],
            [
                (ShopCall(str(method), str(path)), shop_lines(str(stack)))
                for method, path, stack in message.get("calls") or ()
            ],
        )


class Conversation:
    """The questions about one test, and their answers."""

    def __init__(self) -> None:
        self._questions: SimpleQueue[Message] = SimpleQueue()
        self._answers: SimpleQueue[Message] = SimpleQueue()

    def books(self) -> list[object]:
        """Ask for the shop's books.

        Raises:
            AssertionError: an assertion in the shop's own code fails.
            NoHelperAnswer: the books cannot be read.
        """
        answer = self._ask({"ask": "books"})
        if "wrong" in answer:
            raise AssertionError(str(answer["wrong"]))
        entries = answer.get("books")
        if not isinstance(entries, list):
            raise NoHelperAnswer(f"expected a list of entries as books, not {entries!r}")
        return entries

    def page(self, url: str) -> str | None:
        """Ask for the text of a shop page; return None if the page does not exist."""
        text = self._ask({"ask": "page", "url": url}).get("page")
        return None if text is None else str(text)

    def run_job(self, name: str) -> str | None:
        """Ask the helper to run a job of the shop; return the reason for a failure, or None."""
        try:
            self._ask({"ask": "job", "job": name})
        except NoHelperAnswer as failed:
            return str(failed)
        return None

    def _ask(self, question: Message) -> Message:
        self._questions.put(question)
        try:
            answer = self._answers.get(timeout=ANSWER_SECONDS_MAX)
        except Empty:
            raise NoHelperAnswer(
                f"the suite did not report its {question['ask']} within {ANSWER_SECONDS_MAX:.0f} s"
            ) from None
        if "error" in answer:
            raise NoHelperAnswer(str(answer["error"]).partition("\n")[0])
        return answer

    def end(self) -> None:
        """End the conversation: there are no more questions."""
        self._questions.put({"ask": None})

    def receive_answer(self, message: Message) -> None:
        """Receive the answer to the last question."""
        self._answers.put(message)

    def next_question(self) -> Message:
        """Wait for the next question; its ``ask`` is None at the end of the conversation."""
        try:
            return self._questions.get(timeout=JUDGE_SECONDS_MAX)
        except Empty:
            return {"ask": None}


BeginTest = Callable[[str, str], str]
"""Registers the project of a test under a name; returns the unique name of the test in this run.

Raises:
    ValueError: the project does not exist.
"""
EndTest = Callable[[str, EndOfTest, Conversation], None]
"""Judges the ended test of a project."""


class HelperEndpoint(WebhookEndpoint):
    """A local HTTP server for the helpers of one run."""

    body_bytes_max = 1 << 30  # the helper of the user's own suite sends what it has

    def __init__(self, begin_test: BeginTest, end_test: EndTest) -> None:
        self._begin_test, self._end_test = begin_test, end_test
        self._lock = Lock()
        self._conversations: dict[str, Conversation] = {}
        super().__init__()

    def respond(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, bytes]:
        """Answer a message with JSON."""
        try:
            return OK, json.dumps(self._answer_message(_parse_message(raw))).encode()
        except ValueError as wrong:
            return BAD_REQUEST, json.dumps({"error": {"type": "Rehearsal", "value": str(wrong)}}).encode()

    def _answer_message(self, message: Message) -> Message:
        project_id = str(message.get("project_id", ""))
        if "begins" in message:
            return {"test": self._begin_test(project_id, str(message["begins"]))}
        if "ends" in message:
            return self._judge(project_id, message)
        with self._lock:
            conversation = self._conversations.get(project_id)
        if conversation is None:
            raise ValueError(f"no test of project {project_id!r} has ended yet: {EXPECTED_MESSAGE}")
        conversation.receive_answer(message)
        return conversation.next_question()

    def _judge(self, project_id: str, message: Message) -> Message:
        conversation, ending = Conversation(), EndOfTest.parse(message)
        with self._lock:
            self._conversations[project_id] = conversation

        def judge() -> None:
            try:
                self._end_test(project_id, ending, conversation)
            finally:
                conversation.end()

        start(Thread(target=judge, name="rehearsal judge", daemon=True))
        return conversation.next_question()


def _parse_message(text: bytes) -> Message:
    try:
        message = json.loads(text)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise ValueError(EXPECTED_MESSAGE)
    return message
