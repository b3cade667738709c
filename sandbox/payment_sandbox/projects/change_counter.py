"""The number of changes by clients in an epoch, for jobs that need not run again in an unchanged state."""

from typing import NamedTuple


class Moment(NamedTuple):
    """A position in the history of an epoch: the number of changes and of webhook attempts."""

    changes: int = 0
    attempts: int = 0


class ChangeCounter:
    """A counter of the changes in an epoch after the first ``watch``."""

    def __init__(self) -> None:
        self.is_watched = False
        self.moment = Moment()

    def watch(self) -> Moment:
        """Return the current moment, and start counting."""
        self.is_watched = True
        return self.moment

    def add(self, changes: int, attempts: int) -> None:
        """Count the changes and the webhook attempts of one edit."""
        self.moment = Moment(self.moment.changes + changes, self.moment.attempts + attempts)
