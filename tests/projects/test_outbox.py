"""An outbox moves each webhook through its states, whoever sends it."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from payment_sandbox.delivery.receivers import DeliveryOutcome, Destination, PreparedAttempt
from payment_sandbox.delivery.sending import ProjectSender
from payment_sandbox.orders.webhooks import Delivery, Reply
from payment_sandbox.projects.outbox import (
    Outbox,
    QueuedDelivery,
)
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.serving.services import REAL_TIME
from tests.support.projects import made_project

MINUTE = datetime(2026, 3, 1, 12, tzinfo=UTC)


class ManualHost(Services):
    """A host whose carriers run when a test says so; it can run out of threads."""

    def __init__(self) -> None:
        super().__init__(REAL_TIME)
        self.carriers: list[Callable[[], None]] = []
        self.has_threads = True
        self.received: list[str] = []

    def create_outbox(self, project: Project) -> Outbox:
        return Outbox(ProjectSender(project, self.receiver, self.run))

    def run(self, work: Callable[[], None]) -> None:
        if not self.has_threads:
            raise RuntimeError("can't start new thread")
        self.carriers.append(work)

    def receiver(self, destination: Destination, url: str) -> "ManualHost":
        return self

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        self.received.append(attempt.delivery.order_id)
        return [DeliveryOutcome(Reply(1.0, status=200), attempt.real_at)]

    def carry(self) -> list[str]:
        """Run the carriers, and return the ids of the orders whose webhooks arrived."""
        while self.carriers:
            self.carriers.pop(0)()
        received, self.received = self.received, []
        return received


@pytest.fixture
def host() -> ManualHost:
    """A host with manual carriers."""
    return ManualHost()


@pytest.fixture
def project(host: ManualHost) -> Project:
    """A project with a webhook URL."""
    return made_project(MINUTE, host, webhook_url="http://shop.test/")


def put(project: Project, *names: str) -> None:
    """Queue a webhook of each of these orders."""
    for name in names:
        with project.edit() as edit:
            edit.store_delivery(Delivery(name, name, "http://shop.test/", "processing", MINUTE))
        project.epoch.outbox.put(QueuedDelivery(name, name), None)
        project.epoch.outbox.start()


def test_a_webhook_asks_for_a_carrier_again_if_no_thread_has_started(
    host: ManualHost, project: Project
) -> None:
    """Only the first webhook asks for a carrier; after a failed start, the next one asks again."""
    host.has_threads = False
    with pytest.raises(RuntimeError, match="new thread"):
        put(project, "first")
    host.has_threads = True
    put(project, "second", "third")
    assert len(host.carriers) == 1
    assert host.carry() == ["first", "second", "third"]


def test_a_carrier_that_has_waited_long_enough_hands_the_rest_over(
    host: ManualHost, project: Project
) -> None:
    """Another carrier sends the rest, in order."""
    put(project, "first", "second", "third")
    host.carriers.clear()
    project.epoch.outbox.send_due(lambda: True)
    assert host.received == ["first"]
    assert host.carry() == ["first", "second", "third"]
