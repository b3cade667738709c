"""A project's edits are atomic."""

from datetime import UTC, datetime

import pytest

from payment_sandbox.operations.act import act
from payment_sandbox.operations.agenda import CLEANUP_BATCH_SIZE, agenda, clean_up_agenda
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_PROJECT_ID
from tests.support.projects import made_project, made_registry
from tests.support.servers import make_server

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


def test_servers_with_the_same_seed_create_the_same_keys() -> None:
    """Servers with the same seed create the same keys; without a seed keys are random."""
    keys = [[made_registry(seed=seed).create({})[1] for _ in range(1)] for seed in (1, 1, None, None)]
    assert keys[0] == keys[1]
    assert keys[2] != keys[3]


def test_the_agenda_drops_finished_orders(project: Project) -> None:
    """The agenda drops the expiries of finished orders in batches, and keeps the others in order."""
    for number in range(3000):
        order = create_order(project, ORDER)
        if number % 100:
            act(project, order.id, Action("customer", "cancel"))
    waiting = agenda(project.epoch)
    assert (len(project.epoch.timeline), len(waiting)) == (3000, 30)
    for _ in range(3000 // CLEANUP_BATCH_SIZE):
        assert len(project.epoch.timeline) == 3000
        clean_up_agenda(project, project.epoch)
    assert len(project.epoch.timeline) == 30
    assert agenda(project.epoch) == waiting


def test_the_first_project_has_one_id_for_ever() -> None:
    """The first project has a constant id for bookmarks; other projects have different ids."""
    ids = []
    for _ in range(2):
        with make_server(clock="frozen") as server:
            server.registry.create({})
            ids.append([project.project_id for project in server.registry.all()])
    assert ids[0][0] == ids[1][0] == FIRST_PROJECT_ID == "5a4dbeef-0000-4000-8000-000000000001"
    assert ids[0][1] != ids[1][1]
