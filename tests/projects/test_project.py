"""A project's edits are atomic."""

from datetime import UTC, datetime

import pytest

from payment_sandbox.operations.act import act
from payment_sandbox.operations.agenda import CLEANUP_BATCH_SIZE, agenda, clean_up_agenda
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.projects.epoch import CLEANUP_LENGTH_MIN
from payment_sandbox.projects.project import Project
from tests.support.projects import made_project

ORDER = {"currency": "EUR", "amount": 1000, "client": {}, "transactions": [{"payment_method": "credit-card"}]}


@pytest.fixture
def project() -> Project:
    """A project without courier and scheduler."""
    return made_project(datetime(2026, 3, 1, tzinfo=UTC), webhook_url="https://shop.example/")


def test_an_edit_that_fails_changes_nothing(project: Project) -> None:
    """A failed edit leaves the order, the agenda and the webhooks unchanged."""
    order = create_order(project, ORDER)
    before = (project.find_order(order.id), len(project.epoch.timeline), project.epoch.store.deliveries())

    def fail() -> None:
        with project.edit() as edit:
            copy = edit.order(order.id)
            edit.move_order(copy, Trigger.VISIT)
            edit.schedule(edit.now, next(iter(project.epoch.timeline)).item)
            raise ValueError("in the edit")

    with pytest.raises(ValueError, match="in the edit"):
        fail()
    after = (project.find_order(order.id), len(project.epoch.timeline), project.epoch.store.deliveries())
    assert after == before
    assert after[0] is before[0]
    assert after[0].status == "new"


def test_the_agenda_drops_finished_orders(project: Project) -> None:
    """The agenda drops the expiries of finished orders in batches, and keeps the others in order."""
    for number in range(CLEANUP_LENGTH_MIN):
        order = create_order(project, ORDER)
        if number % 20:
            act(project, order.id, Action("customer", "cancel"))
    waiting = agenda(project.epoch)
    assert (len(project.epoch.timeline), len(waiting)) == (CLEANUP_LENGTH_MIN, 50)
    for _ in range(CLEANUP_LENGTH_MIN // CLEANUP_BATCH_SIZE):
        assert len(project.epoch.timeline) == CLEANUP_LENGTH_MIN
        clean_up_agenda(project, project.epoch)
    assert len(project.epoch.timeline) == 50
    assert agenda(project.epoch) == waiting
