"""What a shop believes is compared with the truth, also when the journal has forgotten how that came about."""

from payment_sandbox.operations.in_words import beliefs
from payment_sandbox.projects.journal import ENTRIES_MAX, ReachedStatus
from payment_sandbox.testing.project import PaymentSandbox
from tests.support.in_process import place


def test_statuses_that_were_dropped_make_no_order_new(payment_sandbox: PaymentSandbox) -> None:
    """The shop read the order after it was paid, and ten thousand other changes came later."""
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")
    project = payment_sandbox.server.project_of(payment_sandbox.api_key)
    assert project is not None
    journal, now = project.epoch.journal, project.now()
    journal.add(
        [
            ReachedStatus(journal.next_id("status"), "another", None, None, "new", now, now, None)
            for _ in range(ENTRIES_MAX)
        ]
    )
    assert beliefs(project.epoch, order_id)[-1].is_true
    assert {belief.service for belief in beliefs(project.epoch, order_id)} == {"completed"}
