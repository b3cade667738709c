"""Calls that look like a mistake of the shop, and are none."""

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.project_review import review
from tests.support.driver import Sandbox, card


def test_a_retry_with_its_key_is_no_second_order(sandbox: Sandbox) -> None:
    """A creation that is sent again with its key is one order; with another key, it is a second one."""
    body = {"currency": "EUR", "amount": 2450, "merchant_order_id": "S-1001", "transactions": [card()]}

    def create(key: str) -> str:
        order_id: str = sandbox.post("/v1/orders/", body, headers={"Idempotency-Key": key}).json()["id"]
        return order_id

    def rules() -> set[str]:
        return {each.rule for each in review(SandboxClient(sandbox.url, sandbox.key)) if each.is_open}

    first = create("one")
    assert create("one") == first
    assert "ORD-07" not in rules()
    assert create("two") != first
    assert "ORD-07" in rules()
