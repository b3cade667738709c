"""The caller behind a change: a client's call, or none for an automatic change.

A thread works for one caller at a time. The caller is the only context variable; all other context is passed
as arguments.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from payment_sandbox.projects.outbox import HeldDeliveries, Outbox

AnswerBuilder = Callable[[Any], str | None]
"""Builds the response to a committed edit, as text; None if the edit does not determine the response."""


class RequestCommit(NamedTuple):
    """One commit of a request, with the response if this commit determines it."""

    request_id: str
    number: int
    answer: str | None = None


class TrackedRequest:
    """A request in progress. Its id makes it idempotent: a retry reuses the commits of the first request."""

    __slots__ = ("build_answer", "commits", "id", "is_named")

    def __init__(
        self,
        request_id: str,
        build_answer: AnswerBuilder | None = None,
        *,
        is_named: bool = False,
    ) -> None:
        """With ``is_named``, the client has chosen the id, and may retry with it."""
        self.id = request_id
        self.build_answer = build_answer
        self.is_named = is_named
        self.commits = 0

    def part(self, edit: Any) -> RequestCommit:
        """Number the next commit, and return its record."""
        self.commits += 1
        return RequestCommit(
            self.id, self.commits, self.build_answer(edit) if self.build_answer is not None else None
        )


class WaitingThread:
    """A thread that will wait for webhooks, and then delivers them itself."""

    __slots__ = ("carriers", "thread_id")

    def __init__(self) -> None:
        self.thread_id: int | None = get_ident()  # None once the wait is over
        self.carriers: deque[Callable[..., None]] = deque()  # each delivers the webhooks in an outbox

    def deliver(self, is_enough: Callable[[], bool]) -> None:
        """Deliver the webhooks of all outboxes, until ``is_enough`` is true."""
        while self.carriers and not is_enough():
            self.carriers.popleft()(is_enough)


class Caller:
    """The call that a thread works for."""

    __slots__ = ("callback_outbox", "cause", "held", "outer", "tracked", "waiting")

    def __init__(self) -> None:
        self.outer = _CALLER.get()  # the enclosing caller of the thread
        self.tracked: TrackedRequest | None = None
        self.cause: str | None = None  # the id of a journal record
        self.held: HeldDeliveries | None = None  # webhooks that wait for the response
        self.callback_outbox: Outbox | None = (
            None  # set while a handler processes one of its webhooks, and may call back
        )
        self.waiting: WaitingThread | None = self.outer.waiting if self.outer is not None else None

    def waiting_thread(self) -> WaitingThread | None:
        """Return this thread if it will deliver webhooks; other threads get copies of its context."""
        waiting = self.waiting
        return waiting if waiting is not None and waiting.thread_id == get_ident() else None

    def is_handling(self, outbox: "Outbox") -> bool:
        """Whether a webhook handler of this outbox makes this call, so that waiting would deadlock."""
        return self.callback_outbox is outbox or (self.outer is not None and self.outer.is_handling(outbox))


_CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
NO_CALLER: Final = Caller()


def caller() -> Caller:
    """Return the caller of this thread."""
    return _CALLER.get() or NO_CALLER


@contextmanager
def as_caller(client: Caller) -> Iterator[None]:
    """Work for a caller in the context."""
    token = _CALLER.set(client)
    try:
        yield
    finally:
        _CALLER.reset(token)


def _derived_caller() -> Caller:
    """Derive a caller from the current one, for a part of its work."""
    outer, inner = caller(), Caller()
    inner.tracked, inner.cause, inner.held = outer.tracked, outer.cause, outer.held
    return inner


def with_cause(record_id: str) -> AbstractContextManager[None]:
    """Attribute changes in the context to a journal record."""
    inner = _derived_caller()
    inner.cause = record_id
    return as_caller(inner)


@contextmanager
def as_waiting_thread() -> Iterator[WaitingThread]:
    """Let this thread deliver the webhooks of the context itself."""
    inner = _derived_caller()
    inner.waiting = waiting = WaitingThread()
    try:
        with as_caller(inner):
            yield waiting
    finally:
        waiting.thread_id = None


def during_delivery(outbox: "Outbox") -> AbstractContextManager[None]:
    """Mark calls in the context as made by a webhook handler of this outbox."""
    inner = _derived_caller()
    inner.callback_outbox = outbox
    return as_caller(inner)
