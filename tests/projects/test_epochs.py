"""What a reset throws away is gone whole, and who still works on it changes nothing."""

import gc
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

import pytest

from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance
from payment_sandbox.operations.agenda import agenda
from payment_sandbox.operations.clock import advance_clock, catch_up
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.refusals import ClockBusy
from payment_sandbox.orders.statuses import Trigger
from payment_sandbox.orders.webhooks import Reply, WebhookRequest
from payment_sandbox.projects.locks import PUBLISHING, STATE, LockOrderBroken, RankedLock
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.services import ORDERS_PER_FREEZE, ServerServices
from tests.support.projects import made_project

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
ORDER = {"currency": "EUR", "amount": 1000, "client": {}, "transactions": [{"payment_method": "credit-card"}]}


@pytest.fixture
def project() -> Project:
    """A project whose webhooks nobody delivers."""
    return made_project(NOON)


def test_an_edit_of_an_epoch_that_is_over_changes_nothing(project: Project) -> None:
    """It says so, and the new epoch is as fresh as it was."""
    order = create_order(project, ORDER)
    old = project.epoch
    project.reset()
    with pytest.raises(ProjectReset), project.edit(old) as edit:
        edit.move_order(edit.order(order.id), Trigger.VISIT)
    assert old.find_order(order.id).status == "new"
    assert project.epoch.store.order_ids() == []


def test_an_advance_ends_with_its_epoch() -> None:
    """A reset while it waits for a webhook stops it; the log of the new epoch stays empty."""
    called, go_on = Event(), Event()

    def slow(request: WebhookRequest, copies: int) -> list[Reply]:
        called.set()
        go_on.wait(10)
        return [Reply(0.0, status=200)] * copies

    project = made_project(NOON, ServerServices(Courier(slow)), webhook_url="http://shop.example/")
    act(project, create_order(project, ORDER).id, Action("customer", "visit"))
    with ThreadPoolExecutor(1) as threads:
        advancing = threads.submit(advance_clock, project, {"by": "PT1H"})
        assert called.wait(10)
        project.reset()
        result = advancing.result(10)
        go_on.set()
    assert result.stopped
    assert (project.epoch.is_advancing, project.epoch.advance_log) == (False, None)
    assert advance_clock(project, {"by": "PT1H"}).events == []


def test_a_clock_that_is_busy_says_so(project: Project) -> None:
    """Until the other advance has ended."""
    project.epoch.advance_lock.acquire()
    with pytest.raises(ClockBusy):
        advance(project, None)
    project.epoch.advance_lock.release()
    advance(project, None)


@pytest.mark.parametrize("_", range(20))
def test_a_setting_changed_while_a_scenario_begins_is_kept(project: Project, _: int) -> None:
    """Neither of the two is lost, whichever comes first."""
    scenario = load_scenario({"name": "x", "settings": {"absolute_urls": True}}, ())
    both = [
        Thread(target=project.change_settings, args=({"name": "shop"},)),
        Thread(target=project.activate, args=(scenario,)),
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    settings = project.settings
    assert (settings.name, settings.absolute_urls) == ("shop", True)
    assert project.epoch.state.scenario is scenario


def test_something_due_that_fails_is_set_aside(project: Project) -> None:
    """It is shown once, as failed, and everything else goes on."""
    broken, sound = create_order(project, ORDER), create_order(project, ORDER)
    with project.edit() as edit:
        edit.order(broken.id).status = "cancelled"  # its attempt is still open, which no operation leaves so
    result = advance_clock(project, {"by": "PT1H"})
    failed = [event for event in result.events if "failed" in event]
    assert [event["order_id"] for event in failed] == [broken.id]
    assert "IllegalTransition" in failed[0]["failed"]
    assert project.find_order(sound.id).status == "expired"
    assert agenda(project.epoch) == failed
    assert [failure.order_id for failure in project.epoch.journal.failures] == [broken.id]
    assert advance_clock(project, {"by": "PT1H"}).events == []


def test_a_running_clock_reports_what_fails_once(caplog: pytest.LogCaptureFixture) -> None:
    """In one line of the log, and no call is refused for it."""
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
    """Where the order is checked, which is in every test here."""
    state, telling = RankedLock(STATE), RankedLock(PUBLISHING)
    with state, telling:
        pass
    with telling, pytest.raises(LockOrderBroken):
        state.acquire()
    with state, pytest.raises(LockOrderBroken):
        RankedLock(STATE).acquire()
    assert not state.locked()


def test_the_collector_looks_at_what_a_reset_has_thrown_away() -> None:
    """Orders are frozen once they are settled, and thawed with their epoch."""
    services = ServerServices(Courier(lambda request, copies: []), freeze_memory=True)
    project = made_project(NOON, services)
    for _ in range(ORDERS_PER_FREEZE):
        create_order(project, ORDER)
    assert gc.get_freeze_count() > 0
    project.reset()
    assert gc.get_freeze_count() == 0
