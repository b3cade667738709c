"""Varies how a shop's form is submitted: twice, with another value, or after another customer."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import copy_context
from io import BytesIO
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.loading import lazy
from payment_sandbox.serving.threads import start
from payment_sandbox.testing.environments import body_of

if TYPE_CHECKING:
    import asyncio

    from payment_sandbox.scenarios.variation import SubmittedForm
    from payment_sandbox.testing.shops import filling
else:
    asyncio = lazy("asyncio")
    filling = lazy("payment_sandbox.testing.shops.filling")

GET_METHOD: Final = "GET"
POST_METHOD: Final = "POST"
Environ = dict[str, Any]
Scope = dict[str, Any]
WsgiAnswer = Callable[[Environ, Any], Any]
"""Answers a request, given ``start_response``."""
CUSTOMER_HEADERS: Final = ("cookie", "authorization")
HTML_TYPE: Final = "text/html"
CONTENT_TYPE: Final = "content-type"


class Submission(NamedTuple):
    """A variation of a submission: by default a second submission, ``at_once`` or afterwards.

    ``fill`` returns a changed body, which is submitted once unless ``refill`` returns a second body.
    ``postpone`` receives the second submission, and performs it later.
    """

    at_once: bool = False
    fill: "Callable[[filling.FormBody], bytes] | None" = None
    after_other_customer: Callable[[], None] | None = None  # called after the other customer's submission
    refill: "Callable[[filling.FormBody], bytes] | None" = None
    postpone: Callable[[Callable[[], None]], None] | None = None

    def bodies(self, form: "filling.FormBody") -> tuple[bytes, bytes | None]:
        """Return the bodies of the first and the second submission, if there is a second one."""
        if self.fill is None:
            return form.body, form.body
        return self.fill(form), self.refill(form) if self.refill is not None else None


SubmissionChooser = Callable[[str, "SubmittedForm"], Submission | None]
"""Chooses the variation of a form by the form's path and the kinds of its values."""


PageRecorder = Callable[[str, str], None]
"""Records the URL path of a page that the test has opened, with its query, and the test's cookies."""


class _SubmissionRun:
    """A run of a test that varies submissions, and the choices on the pages so far."""

    def __init__(self, choose: SubmissionChooser, record_page: PageRecorder) -> None:
        self.record_page = record_page
        self._choose = choose
        self._choices: dict[str, Sequence[str]] = {}

    def choose_submission(self, path: str, body: bytes) -> "tuple[Submission | None, filling.FormBody]":
        """Return the variation of a form, if any, and the form."""
        form = filling.FormBody(body, self._choices)
        return self._choose(path, form.details), form

    def read_page(self, content_type: str, page: bytes) -> None:
        """Add the choices on a page."""
        if content_type.startswith(HTML_TYPE):
            self._choices |= filling.read_choices(page.decode(errors="replace"))


_runs: Final[list[_SubmissionRun]] = []  # the current run, if any


def set_submission_chooser(
    choose: SubmissionChooser | None, record_page: PageRecorder = lambda url, cookies: None
) -> None:
    """Set the functions that vary submissions and record opened pages; None disables both."""
    _runs[:] = [_SubmissionRun(choose, record_page)] if choose is not None else []


class RepeatedRequest:
    """A repetition of a request, on another thread ``at_once``, or afterwards."""

    def __init__(self, environ: Environ, at_once: bool, send: Callable[[Environ], Any]) -> None:
        context = copy_context()

        def repeat() -> None:
            with suppress(Exception):
                context.run(send, environ)

        self._repeat = repeat
        self._thread = Thread(target=repeat, name="second click") if at_once else None
        if self._thread is not None:
            start(self._thread)

    def end(self) -> None:
        """Wait for the answer to the second request, and ignore exceptions."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._repeat()


def answer_submission(environ: Environ, answer: WsgiAnswer, start_response: Any = None) -> Any:
    """Answer a WSGI request from a test, applying the rehearsal's variation, if any."""
    if not _runs:
        return answer(environ, start_response)
    run = _runs[-1]
    answer = _wrap_answer(run, answer)
    if environ["REQUEST_METHOD"] != POST_METHOD:
        if environ["REQUEST_METHOD"] == GET_METHOD:
            query = environ.get("QUERY_STRING", "")
            run.record_page(f"{environ['PATH_INFO']}?{query}", environ.get("HTTP_COOKIE", ""))
        return answer(environ, start_response)
    body = body_of(environ)
    environ["wsgi.input"] = BytesIO(body)
    submission, form = run.choose_submission(environ["PATH_INFO"], body)
    if submission is None:
        return answer(environ, start_response)
    return _answer_changed(submission, form, environ, answer, start_response)


def _answer_changed(
    submission: Submission,
    form: "filling.FormBody",
    environ: Environ,
    answer: WsgiAnswer,
    start_response: Any,
) -> Any:
    """Answer a changed WSGI request, and its repetition, if there is one; the first response counts."""
    first, second = submission.bodies(form)
    own = _with_body(environ, form, first)
    if second is None:
        return answer(own, start_response)
    copy, is_at_once = _with_body(environ, form, second), submission.at_once

    def repeat() -> RepeatedRequest:
        return RepeatedRequest(copy, is_at_once, lambda sent: answer(sent, _discard_response))

    if submission.after_other_customer is not None:
        for name in CUSTOMER_HEADERS:
            copy.pop(f"HTTP_{name.upper()}", None)
        repeat().end()
        submission.after_other_customer()
        return answer(own, start_response)
    if submission.postpone is not None:
        submission.postpone(lambda: repeat().end())
        return answer(own, start_response)
    repeated = repeat()
    try:
        return answer(own, start_response)
    finally:
        repeated.end()


def _with_body(environ: Environ, form: "filling.FormBody", body: bytes) -> Environ:
    """Return a request with this body; an unchanged body keeps its declared length."""
    length = {} if body == form.body else {"CONTENT_LENGTH": str(len(body))}
    return {**environ, "wsgi.input": BytesIO(body), **length}


def _wrap_answer(run: _SubmissionRun, answer: WsgiAnswer) -> WsgiAnswer:
    """Wrap ``answer``, so that the run reads the choices on each returned page."""

    def read(environ: Environ, start_response: Any) -> Any:
        if start_response is None:  # Django returns a response instead
            response = answer(environ, None)
            run.read_page(response.headers.get(CONTENT_TYPE, ""), getattr(response, "content", b""))
            return response
        content_types: list[str] = []

        def start(status: str, headers: list[tuple[str, str]], *exc_info: Any) -> Any:
            content_types[:] = [value for name, value in headers if name.lower() == CONTENT_TYPE]
            return start_response(status, headers, *exc_info)

        pieces = answer(environ, start)
        if not any(each.startswith(HTML_TYPE) for each in content_types):
            return pieces
        pieces = read_whole(pieces)
        run.read_page(HTML_TYPE, b"".join(pieces))
        return pieces

    return read


def read_whole(pieces: Iterable[bytes]) -> list[bytes]:
    """Read a whole response, and close it."""
    try:
        return list(pieces)
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()


def _discard_response(
    status: str, headers: list[tuple[str, str]], exc_info: Any = None
) -> Callable[[bytes], None]:
    """Start a response, and discard it."""
    return lambda piece: None


Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]


async def answer_submission_on_loop(scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
    """Answer an ASGI request from a test, applying the rehearsal's variation, if any."""
    if not _runs:
        await answer(scope, receive, send)
        return
    run = _runs[-1]
    send = _wrap_send(run, send)
    if scope["method"] != POST_METHOD:
        if scope["method"] == GET_METHOD:
            cookies = (value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie")
            run.record_page(f"{scope['path']}?{scope['query_string'].decode()}", "; ".join(cookies))
        await answer(scope, receive, send)
        return
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)
    submission, form = run.choose_submission(scope["path"], body)
    if submission is None:
        await answer(scope, _create_receive(body), send)
    elif submission.after_other_customer is not None:
        with suppress(Exception):
            await answer(_without_customer_headers(scope), _create_receive(body), _discard_message)
        submission.after_other_customer()
        await answer(scope, _create_receive(body), send)
    else:
        await _answer_changed_on_loop(submission, scope, form, send, answer)


def _wrap_send(run: _SubmissionRun, send: Send) -> Send:
    """Wrap ``send``, so that the run reads the choices on each sent page."""
    content_types: list[str] = []
    pieces: list[bytes] = []

    async def read(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = ((name.decode("latin-1").lower(), value) for name, value in message.get("headers", ()))
            content_types[:] = [value.decode("latin-1") for name, value in headers if name == CONTENT_TYPE]
        elif any(each.startswith(HTML_TYPE) for each in content_types):
            pieces.append(message.get("body", b""))
            if not message.get("more_body"):
                run.read_page(HTML_TYPE, b"".join(pieces))
        await send(message)

    return read


async def _answer_changed_on_loop(
    submission: Submission, scope: Scope, form: "filling.FormBody", send: Send, answer: Answer
) -> None:
    """Answer a changed ASGI request, and its repetition, if there is one; the first response counts."""
    first, second = submission.bodies(form)
    own = answer(_with_length(scope, form, first), _create_receive(first), send)
    if second is None:
        await own
        return

    async def repeat() -> None:
        await answer(_with_length(scope, form, second), _create_receive(second), _discard_message)

    if submission.at_once:
        await asyncio.gather(own, repeat())
        return
    await own
    if submission.postpone is None:
        await repeat()
    else:
        submission.postpone(lambda: RepeatedRequest({}, True, lambda _: asyncio.run(repeat())).end())


def _create_receive(body: bytes) -> Receive:
    """Return a ``receive`` function for a recorded body."""
    messages: Iterator[Any] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    return receive


def _with_length(scope: Scope, form: "filling.FormBody", body: bytes) -> Scope:
    """Return a request with the length of this body; an unchanged body keeps its declared length."""
    if body == form.body:
        return dict(scope)
    others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
    return {**scope, "headers": [*others, (b"content-length", str(len(body)).encode())]}


def _without_customer_headers(scope: Scope) -> Scope:
    """Return a request without the headers that identify the customer."""
    return {
        **scope,
        "headers": [
            (name, value) for name, value in scope["headers"] if name.decode() not in CUSTOMER_HEADERS
        ],
    }


async def _discard_message(message: Any) -> None:
    """Discard a part of a response."""
