"""What others than the clock have changed in an epoch: what going back to an earlier moment would lose."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

NAMED_MAX: Final = 20


class Moment(NamedTuple):
    """How much had happened in an epoch."""

    changes: int = 0
    attempts: int = 0


class ChangeCounter:
    """Counts what happens in an epoch from the first moment that somebody may come back to."""

    def __init__(self) -> None:
        self.is_watched = False
        self.moment = Moment()
        self._newest: deque[str] = deque(maxlen=NAMED_MAX)

    def watch(self) -> Moment:
        """The present moment; from now on, changes are named."""
        self.is_watched = True
        return self.moment

    def add(self, names: Sequence[str], attempts: int) -> None:
        """Count what one edit has changed, and its attempts to deliver webhooks."""
        self._newest.extend(names)
        self.moment = Moment(self.moment.changes + len(names), self.moment.attempts + attempts)

    def since(self, moment: Moment) -> list[str]:
        """The changes since a moment, oldest first; those that are too many to be named are counted."""
        count = self.moment.changes - moment.changes
        named = list(self._newest)[-count:] if count else []
        more = [f"{count - len(named)} earlier changes"] if count > len(named) else []
        return [*more, *dict.fromkeys(named)]
