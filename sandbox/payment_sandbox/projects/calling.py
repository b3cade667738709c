"""Who causes a change: a client's call, or nobody if it happens on its own.

A thread works for one caller at a time. Nothing else is looked up; it is passed as an argument.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from payment_sandbox.projects.outbox import Held, Outbox

Answering = Callable[[Any], str | None]
"""What is answered once an edit is committed, as text; None if that is not this edit's to say."""


class Part(NamedTuple):
    """One of the commits of a request, and what is answered if it is the one that was asked for."""

    request_id: str
    number: int
    answer: str | None = None


class TrackedRequest:
    """A request under way, whose commits are known by its id: it happens once, however often it comes."""

    __slots__ = ("answering", "id", "is_journaled", "is_named", "parts")

    def __init__(
        self,
        request_id: str,
        answering: Answering | None = None,
        *,
        is_named: bool = False,
        is_journaled: bool = False,
    ) -> None:
        """If it ``is_named``, the client has chosen the id, and may ask again with it.

        If it ``is_journaled``, its end is recorded, so that nothing needs to be flushed before.
        """
        self.id = request_id
        self.answering = answering
        self.is_named = is_named
        self.is_journaled = is_journaled
        self.parts = 0

    def part(self, edit: Any) -> Part:
        """Number the next commit."""
        self.parts += 1
        return Part(self.id, self.parts, self.answering(edit) if self.answering is not None else None)


class Caller:
    """Whoever a thread works for."""

    __slots__ = ("asked", "cause", "delivers", "held", "outer")

    def __init__(self) -> None:
        self.outer = _CALLER.get()  # for whom the same thread works before and after
        self.asked: TrackedRequest | None = None
        self.cause: str | None = None  # the id of a record of the journal
        self.held: Held | None = None  # the webhooks that wait for the response
        self.delivers: Outbox | None = None  # a webhook of it, to a handler that may call the sandbox

    def begin_waiting(self) -> None:
        """Let other calls run while this one waits."""
        if self.outer is not None:
            self.outer.begin_waiting()

    def is_handling(self, outbox: "Outbox") -> bool:
        """Whether a webhook of this outbox is only answered once this caller is."""
        return self.delivers is outbox or (self.outer is not None and self.outer.is_handling(outbox))


_CALLER: Final[ContextVar[Caller | None]] = ContextVar("caller", default=None)
NOBODY: Final = Caller()


def caller() -> Caller:
    """Whoever this thread works for."""
    return _CALLER.get() or NOBODY


@contextmanager
def working_for(one: Caller) -> Iterator[None]:
    """Work for a caller."""
    token = _CALLER.set(one)
    try:
        yield
    finally:
        _CALLER.reset(token)


def _within() -> Caller:
    """A caller like the present one, for a part of its work."""
    outer, inner = caller(), Caller()
    inner.asked, inner.cause, inner.held = outer.asked, outer.cause, outer.held
    return inner


def caused_by(record_id: str) -> AbstractContextManager[None]:
    """While inside, changes are caused by a record of the journal."""
    inner = _within()
    inner.cause = record_id
    return working_for(inner)


def delivering(outbox: "Outbox") -> AbstractContextManager[None]:
    """While inside, a webhook is delivered."""
    inner = _within()
    inner.delivers = outbox
    return working_for(inner)
