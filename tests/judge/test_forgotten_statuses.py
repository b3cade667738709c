"""A shop's view of an order is compared with its status, also after the journal has dropped old records."""

from payment_sandbox.judge.history import beliefs, history
from payment_sandbox.projects.journal import ENTRIES_MAX, ReachedStatus
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, project_of


def read_as_shop(sandbox: PaymentSandbox, order_id: str) -> None:
    """Read an order in a function of the shop."""
    sandbox.session.get(f"{sandbox.base_url}/v1/orders/{order_id}/")


def test_statuses_that_were_dropped_make_no_order_new(payment_sandbox: PaymentSandbox) -> None:
    """A paid order stays paid after ten thousand other status changes."""
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    read_as_shop(payment_sandbox, order_id)
    project = project_of(payment_sandbox)
    journal, now = project.epoch.journal, project.now()
    journal.add(
        [
            ReachedStatus(journal.next_id("status"), "another", None, None, "new", now, now, None)
            for _ in range(ENTRIES_MAX)
        ]
    )
    known = beliefs(history(project.epoch, order_id), project.find_order(order_id))
    assert known[-1].shop == known[-1].service
    assert {belief.service for belief in known} == {"completed"}
