"""Orders take little memory."""

from payment_sandbox.orders.transaction import EMPTY_MAPPING
from tests.support.driver import Sandbox, card


def test_attempts_without_details_share_an_empty_mapping(sandbox: Sandbox) -> None:
    """Attempts without details share one empty mapping for what was asked, shown and planned."""
    store = sandbox.project_in_process.epoch.store
    for created in (sandbox.place(card()), sandbox.place(card())):
        order = store.order(created["id"])
        assert order is not None
        (attempt,) = order.transactions
        assert attempt.asked is attempt.details is attempt.plan is EMPTY_MAPPING
