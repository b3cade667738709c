"""An advance that somebody stops at another server as soon as that one sees it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from payment_sandbox.operations.advance import advance
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.projects.clock import ClockStart
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import NoServices, Project
from payment_sandbox.projects.settings import Settings
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStorage

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class StoppedAtOnce(MemoryStorage):
    """Storage whose clock is held as others want it back already."""

    def hold_clock(self, project: Any) -> bool:
        """True; the wish to stop comes before anything else happens here."""
        project.epoch.is_stopping = True
        return True


def test_a_stop_that_comes_before_the_first_event_is_not_lost() -> None:
    """The advance ends before anything that is due has happened."""
    identity = Identity("p", "m", "key", ClockStart("frozen", NOON))
    project = Project(identity, Settings(), NoServices(REAL_TIME), StoppedAtOnce())
    project.begin()
    create_order(project, {"currency": "EUR", "amount": 1295, "client": {"user_agent": "shop"}})
    ended = advance(project, lambda now: now + timedelta(days=60))
    assert ended.stopped
    assert ended.by_hand
    assert ended.events == []
