"""Changes by clients in an epoch; returning to an earlier moment would discard them."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

NAMES_MAX: Final = 20


class Moment(NamedTuple):
    """A position in the history of an epoch: the number of changes and of webhook attempts."""

    changes: int = 0
    attempts: int = 0


class ChangeCounter:
    """A counter of changes in an epoch; after ``watch``, it also records their names."""

    def __init__(self) -> None:
        self.is_watched = False
        self.moment = Moment()
        self._newest: deque[str] = deque(maxlen=NAMES_MAX)

    def watch(self) -> Moment:
        """Return the current moment, and start recording the names of changes."""
        self.is_watched = True
        return self.moment

    def add(self, names: Sequence[str], attempts: int) -> None:
        """Count the changes and the webhook attempts of one edit."""
        self._newest.extend(names)
        self.moment = Moment(self.moment.changes + len(names), self.moment.attempts + attempts)

    def since(self, moment: Moment) -> list[str]:
        """Name the changes since a moment, oldest first; beyond a limit, only count the oldest changes."""
        count = self.moment.changes - moment.changes
        named = list(self._newest)[-count:] if count else []
        more = [f"{count - len(named)} earlier changes"] if count > len(named) else []
        return [*more, *dict.fromkeys(named)]
