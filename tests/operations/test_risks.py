"""The risk of a finding says who loses money."""

import pytest

from tests.operations.test_judge import (
    Story,
    captures_a_part_for_each_copy,
    charges_a_stored_card_for_each_copy,
    mistakes,
    refunds_for_each_copy,
)
from tests.support.driver import Sandbox
from tests.support.shop import Shop


@pytest.mark.parametrize(
    ("story", "risk"),
    [
        (captures_a_part_for_each_copy, "the customer is charged twice"),
        (charges_a_stored_card_for_each_copy, "the customer is charged twice"),
        (refunds_for_each_copy, "money is refunded twice"),
    ],
)
def test_the_risk_of_a_repeated_call_is_that_of_its_kind(
    sandbox: Sandbox, shop: Shop, story: Story, risk: str
) -> None:
    """A repeated capture or charge costs the customer money, a repeated refund the shop."""
    sandbox.settings(webhook_url=shop.url, mode="live")
    story(sandbox, shop)
    risks = [each.risk for each in mistakes(sandbox) if each.rule == "HOOK-10"]
    assert [each.partition(": ")[2] for each in risks] == [risk]
