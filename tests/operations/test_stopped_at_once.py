"""An advance that a call stops immediately."""

from datetime import UTC, datetime, timedelta

from payment_sandbox.operations.advance import advance, stop_advance
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.projects.clock import Start
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStorage

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def test_a_stop_that_comes_before_the_first_event_is_not_lost() -> None:
    """The advance stops before its first event."""
    identity = Identity("p", "m", "key", Start("frozen", NOON))
    project = Project(identity, Settings(), Services(REAL_TIME), MemoryStorage().create_store)
    project.begin()
    create_order(project, {"currency": "EUR", "amount": 1295, "client": {"user_agent": "shop"}})

    def target(now: datetime) -> datetime:
        assert stop_advance(project)
        return now + timedelta(days=60)

    advanced = advance(project, target)
    assert advanced.stopped
    assert advanced.by_hand
    assert advanced.events == []
