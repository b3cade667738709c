"""An advance that another server stops immediately, and one beside another advance."""

from datetime import UTC, datetime, timedelta

from payment_sandbox.operations.advance import advance
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.projects.clock import Start
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStore

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


class StoppingStore(MemoryStore):
    """A store of a project that another server stops when its clock is acquired."""

    def __init__(self, project: Project) -> None:
        super().__init__()
        self.project = project

    def hold_clock(self) -> bool:
        """Acquire the clock, and request the stop."""
        self.project.epoch.is_stopping = True
        return True


def test_a_stop_that_comes_before_the_first_event_is_not_lost() -> None:
    """The advance stops before its first event."""
    identity = Identity("p", "m", "key", Start("frozen", NOON))
    project = Project(identity, Settings(), Services(REAL_TIME), StoppingStore)
    project.begin()
    create_order(project, {"currency": "EUR", "amount": 1295, "client": {"user_agent": "shop"}})
    advanced = advance(project, lambda now: now + timedelta(days=60))
    assert advanced.stopped
    assert advanced.by_hand
    assert advanced.events == []
