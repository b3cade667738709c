"""A reset discards the whole epoch; edits and advances of the old epoch have no effect."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest

from payment_sandbox.operations.advance import advance_clock, catch_up
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.journal import LoggedFailure
from payment_sandbox.projects.locks import EVENTS, STATE, LockOrderBroken, RankedLock
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.scenarios.loader import load_scenario
from tests.support.projects import made_project

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = {"currency": "EUR", "amount": 1000, "client": {}, "transactions": [{"payment_method": "credit-card"}]}


@pytest.fixture
def project() -> Project:
    """A project without a courier."""
    return made_project(NOON)


def test_an_edit_of_an_old_epoch_changes_nothing(project: Project) -> None:
    """An edit of an old epoch raises ProjectReset, and changes neither epoch."""
    order = create_order(project, ORDER)
    old = project.epoch
    project.reset(default_scenario())
    with pytest.raises(ProjectReset), project.edit(old) as edit:
        edit.move_order(edit.order(order.id), Trigger.VISIT)
    assert old.find_order(order.id).status == "new"
    assert project.epoch.store.order_ids() == []


@pytest.mark.parametrize("_", range(5))
def test_a_setting_changed_while_a_scenario_begins_is_kept(project: Project, _: int) -> None:
    """A concurrent change to the settings and activation of a scenario both take effect."""
    scenario = load_scenario({"name": "x", "settings": {"absolute_urls": True}}, ())
    threads = [
        Thread(target=project.change_settings, args=({"name": "shop"},)),
        Thread(target=project.activate, args=(scenario,)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    settings = project.settings
    assert (settings.name, settings.absolute_urls) == ("shop", True)
    assert project.epoch.state.scenario is scenario


def test_a_failed_command_is_set_aside(project: Project) -> None:
    """A due command that fails is reported once; other commands run."""
    broken, valid = create_order(project, ORDER), create_order(project, ORDER)
    with project.edit() as edit:
        edit.order(broken.id).status = "cancelled"  # an inconsistent state, because its attempt is still open
    result = advance_clock(project, {"by": "PT1H"})
    failed = [event for event in result.events if "failed" in event]
    assert [event["order_id"] for event in failed] == [broken.id]
    assert "IllegalTransition" in failed[0]["failed"]
    assert project.find_order(valid.id).status == "expired"
    assert agenda(project.epoch) == failed
    assert [failure.order_id for failure in project.epoch.journal.of(LoggedFailure)] == [broken.id]
    assert advance_clock(project, {"by": "PT1H"}).events == []


def test_a_running_clock_reports_what_fails_once(caplog: pytest.LogCaptureFixture) -> None:
    """A failed command on a running clock is logged once, and does not affect later calls."""
    project = made_project(NOON)
    order = create_order(project, ORDER)
    with project.edit() as edit:
        edit.order(order.id).status = "cancelled"
    with project.edit() as edit:
        edit.state = edit.state._replace(clock=edit.state.clock.set(NOON + timedelta(hours=1), running=True))
    for _ in range(3):
        catch_up(project)
        create_order(project, ORDER)
    assert len([record for record in caplog.records if "will not be retried" in record.message]) == 1
    assert len(agenda(project.epoch)) == 1 + 3


def test_locks_refuse_to_be_taken_out_of_order() -> None:
    """Locks refuse to be acquired out of order, while the check is on."""
    state, events = RankedLock(STATE), RankedLock(EVENTS)
    with state, events:
        pass
    with events, pytest.raises(LockOrderBroken):
        state.acquire()
    with state, pytest.raises(LockOrderBroken):
        RankedLock(STATE).acquire()
    assert not state.locked()
