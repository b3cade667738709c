"""Varies the submission of a shop's form: twice, with another number, or after another customer."""

import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from contextvars import copy_context
from io import BytesIO
from threading import Thread
from typing import Any, Final, NamedTuple

from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import body_of

POST: Final = "POST"
Environ = dict[str, Any]
Scope = dict[str, Any]
CUSTOMER_HEADERS: Final = ("cookie", "authorization")
_NUMBER: Final = re.compile(rb"(?<![^=:,\[\s])([1-9]\d{0,5})(?=\s*(?:[&,}\]]|\r\n--|$))")


class Submission(NamedTuple):
    """A variation of a submission: by default a repetition, ``at_once`` or afterwards."""

    at_once: bool = False
    more: int = 0  # added to the first whole number of the form, submitted once
    by_another: Callable[[], None] | None = None  # called after a submission by another customer


SubmissionChoice = Callable[[str, str, bool], Submission | None]
"""Chooses the variation of a form from its method, its path, and whether it has a whole number."""

_choices: Final[list[SubmissionChoice]] = []  # the newest last


def set_submission_choice(choice: SubmissionChoice | None) -> None:
    """Set the function that varies submissions; None for no variations."""
    _choices.clear()
    if choice is not None:
        _choices.append(choice)


def may_vary(method: str) -> bool:
    """Return whether requests of this method may be varied."""
    return method == POST and bool(_choices)


def _submission(method: str, path: str, body: bytes) -> Submission | None:
    return _choices[-1](method, path, _NUMBER.search(body) is not None) if may_vary(method) else None


def with_number(body: bytes, more: int) -> bytes:
    """Add ``more`` to the first whole number in a form, encoded as a query, JSON or multipart."""
    return _NUMBER.sub(lambda number: str(int(number[1]) + more).encode(), body, count=1)


class RepeatedRequest:
    """The repetition of a WSGI request, at the same time or afterwards."""

    def __init__(self, environ: Environ, at_once: bool, ask: Callable[[Environ], Any]) -> None:
        context = copy_context()

        def repeat() -> None:
            with suppress(Exception):
                context.run(ask, environ)

        self._repeat = repeat
        self._thread = Thread(target=repeat, name="second click") if at_once else None
        if self._thread is not None:
            start(self._thread)

    def end(self) -> None:
        """Wait for the answer to the second request, and ignore its exceptions."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._repeat()


def answer_submission(
    environ: Environ, answer: Callable[[Environ, Any], Any], start_response: Any = None
) -> Any:
    """Answer a WSGI request of a test, with the variation of the rehearsal, if any."""
    if not may_vary(environ["REQUEST_METHOD"]):
        return answer(environ, start_response)
    body = body_of(environ)
    environ["wsgi.input"] = BytesIO(body)
    submission = _submission(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
    if submission is None:
        return answer(environ, start_response)
    copy = {**environ, "wsgi.input": BytesIO(body)}
    if submission.more:
        filled = with_number(body, submission.more)
        return answer(
            {**environ, "wsgi.input": BytesIO(filled), "CONTENT_LENGTH": str(len(filled))}, start_response
        )
    if submission.by_another is not None:
        for name in CUSTOMER_HEADERS:
            copy.pop(f"HTTP_{name.upper()}", None)
        RepeatedRequest(copy, False, lambda sent: answer(sent, _discard_response)).end()
        submission.by_another()
        return answer(environ, start_response)
    repeated = RepeatedRequest(copy, submission.at_once, lambda sent: answer(sent, _discard_response))
    try:
        return answer(environ, start_response)
    finally:
        repeated.end()


def _discard_response(
    status: str, headers: list[tuple[str, str]], exc_info: Any = None
) -> Callable[[bytes], None]:
    """Start a response, and discard it."""
    return lambda piece: None


Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer_submission_on_loop(scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
    """Answer an ASGI request of a test, with the variation of the rehearsal, if any."""
    if not may_vary(scope["method"]):
        await answer(scope, receive, send)
        return
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    submission = _submission(scope["method"], scope["path"], body)
    if submission is None:
        await answer(scope, _replay(body), send)
    elif submission.more:
        filled = with_number(body, submission.more)
        await answer(_with_length(scope, len(filled)), _replay(filled), send)
    elif submission.by_another is not None:
        with suppress(Exception):
            await answer(_without_customer(scope), _replay(body), _discard)
        submission.by_another()
        await answer(scope, _replay(body), send)
    else:
        await _answer_twice(submission, scope, body, send, answer)


async def _answer_twice(
    submission: Submission, scope: Scope, body: bytes, send: Send, answer: Answer
) -> None:
    """Answer a request and its repetition; the first response counts."""
    first = answer(dict(scope), _replay(body), send)
    second = answer(dict(scope), _replay(body), _discard)
    if submission.at_once:
        from asyncio import gather  # deferred: few shops have a loop

        await gather(first, second)
    else:
        await first
        await second


def _replay(body: bytes) -> Receive:
    """Return a ``receive`` function for a recorded body."""
    messages: Iterator[Any] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    return receive


def _with_length(scope: Scope, length: int) -> Scope:
    others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(length).encode())]}


def _without_customer(scope: Scope) -> Scope:
    """Return a request without the headers that identify the customer."""
    return {
        **scope,
        "headers": [
            (name, value) for name, value in scope["headers"] if name.decode() not in CUSTOMER_HEADERS
        ],
    }


async def _discard(message: Any) -> None:
    """Discard a part of a response."""
