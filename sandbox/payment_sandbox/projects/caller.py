"""The caller behind a change: a client's call, or none for an automatic change.

A thread works for one caller at a time. The caller is a context variable; other context of a request is
passed as arguments.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from hashlib import sha256
from threading import Event, get_ident
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.refusals import KeyReused

SAVED_ANSWERS_MAX: Final = 1000
SAVED_FOR: Final = timedelta(hours=1)  # sandbox time


class SavedAnswer(NamedTuple):
    """The answer to a request with an ``Idempotency-Key``, committed together with its effect."""

    id: str  # the digest of the key
    at: datetime
    of: str  # the request: its method, its path, and the digest of its body
    status: int
    etag: str | None
    order_id: str | None
    body: str


AnswerBuilder = Callable[[Any], SavedAnswer | None]
"""Builds the answer to a committed edit; None if the edit does not determine the answer."""


class AlreadyAnswered(Exception):
    """An earlier request with the same key has been executed, so this request changes nothing."""

    def __init__(self, answer: SavedAnswer) -> None:
        super().__init__(answer.of)
        self.answer = answer


class TrackedRequest:
    """A request with a key, in progress.

    Of the concurrent requests with a key, one runs; the others wait until it ends. The key is claimed by the
    commit of its effect.
    """

    __slots__ = ("_build_answer", "_running", "is_over", "key_digest", "of")

    def __init__(self, of: str, build_answer: AnswerBuilder, key: str) -> None:
        self.of = of
        self._build_answer = build_answer
        self.key_digest = sha256(key.encode()).hexdigest()
        self.is_over = Event()  # the answer is committed, or the request has ended without one
        self._running: dict[str, TrackedRequest] = {}

    def begin(self, running: "dict[str, TrackedRequest]") -> "TrackedRequest | None":
        """Begin, and return None; or return the running request with the same key."""
        other = running.setdefault(self.key_digest, self)
        if other is not self:
            return other
        self._running = running
        return None

    def refuse_repeat(self, saved: SavedAnswer | None) -> None:
        """Refuse to run if an earlier request with the key was executed.

        Raises:
            AlreadyAnswered: the earlier request was the same.
            KeyReused: it was another request.
        """
        if saved is None or self.is_over.is_set():
            return
        if saved.of != self.of:
            raise KeyReused(f"another request had this Idempotency-Key: {saved.of}")
        raise AlreadyAnswered(saved)

    def answer(self, edit: Any) -> SavedAnswer | None:
        """Return the answer that an edit determines, unless an earlier edit has determined it."""
        return self._build_answer(edit) if not self.is_over.is_set() else None

    def end(self) -> None:
        """Let the next request with the key run, or read the answer."""
        if self._running.get(self.key_digest) is self:
            del self._running[self.key_digest]
        self.is_over.set()


class WaitingThread:
    """A thread that will wait for webhooks, and then sends them itself."""

    __slots__ = ("outboxes", "thread_id")

    def __init__(self) -> None:
        self.thread_id: int | None = get_ident()  # None once the wait is over
        self.outboxes: deque[Any] = deque()  # those with webhooks that no other thread sends

    def send_due(self, is_enough: Callable[[], bool]) -> None:
        """Send the webhooks of all outboxes, until ``is_enough`` is true."""
        while self.outboxes and not is_enough():
            self.outboxes.popleft().send_due(is_enough)


class Caller:
    """The call that a thread works for, in the context of this object."""

    __slots__ = ("_token", "callback_outbox", "cause", "held", "outer", "tracked", "waiting")

    def __init__(self) -> None:
        self.outer = _CALLER.get()  # the enclosing caller of the thread
        self.tracked: TrackedRequest | None = None
        self.cause: str | None = None  # the id of a journal record
        self.held: Any = None  # the ``HeldDeliveries`` that wait for the response, if any
        self.callback_outbox: object = (
            None  # while a handler processes one of its webhooks, and may call back
        )
        self.waiting: WaitingThread | None = self.outer.waiting if self.outer is not None else None

    def __enter__(self) -> None:
        self._token = _CALLER.set(self)

    def __exit__(self, *_: object) -> None:
        _CALLER.reset(self._token)

    def waiting_thread(self) -> WaitingThread | None:
        """Return this thread if it will deliver webhooks; other threads get copies of its context."""
        waiting = self.waiting
        return waiting if waiting is not None and waiting.thread_id == get_ident() else None

    def is_handling(self, outbox: object) -> bool:
        """Whether a webhook handler of this outbox makes this call, so that waiting would deadlock."""
        return self.callback_outbox is outbox or (self.outer is not None and self.outer.is_handling(outbox))


_CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
NO_CALLER: Final = Caller()


def caller() -> Caller:
    """Return the caller of this thread."""
    return _CALLER.get() or NO_CALLER


def _derived_caller() -> Caller:
    """Derive a caller from the current one, for a part of its work."""
    outer, inner = _CALLER.get() or NO_CALLER, Caller()
    inner.tracked, inner.cause, inner.held = outer.tracked, outer.cause, outer.held
    return inner


def with_cause(record_id: str) -> Caller:
    """Return a caller whose changes are attributed to a journal record."""
    inner = _derived_caller()
    inner.cause = record_id
    return inner


@contextmanager
def as_waiting_thread() -> Iterator[None]:
    """Let this thread send the webhooks of the context itself; at its end, other threads send the rest."""
    inner = _derived_caller()
    inner.waiting = waiting = WaitingThread()
    try:
        with inner:
            yield
    finally:
        waiting.thread_id = None
        for outbox in waiting.outboxes:
            outbox.start_thread()


def during_delivery(outbox: object) -> Caller:
    """Return a caller whose calls are made by a webhook handler of this outbox."""
    inner = _derived_caller()
    inner.callback_outbox = outbox
    return inner
