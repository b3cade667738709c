"""Which request a change belongs to, so that it happens once however often it is asked for."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

Answering = Callable[[Any], str | None]
"""What is answered once an edit is committed, as text; None if that is not this edit's to say."""


class Part(NamedTuple):
    """One of the commits of a request, and what is answered if it is the one that was asked for."""

    request_id: str
    number: int
    answer: str | None = None


class Asked:
    """A request under way."""

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


_ASKED: Final[ContextVar[Asked | None]] = ContextVar("asked", default=None)


def asked() -> Asked | None:
    """The request that this thread works on; None in the background."""
    return _ASKED.get()


def set_asked(request: Asked | None) -> None:
    """From now on, this thread works on this request."""
    _ASKED.set(request)
