"""A webhook that is held for a swap is never lost."""

import pytest

from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop

SWAP_FIRST = [{"when": {"status": "processing"}, "then": {"swap": True}}]


def test_a_resend_releases_a_held_webhook(watched: Sandbox, shop: Shop) -> None:
    """A resend releases a held webhook, too."""
    sent_before = watched.place_with_lines("invoice-later-b")
    watched.settle()
    watched.scenario(webhooks=SWAP_FIRST)
    held = watched.place(by("bank-transfer"))
    watched.settle()
    (delivery, _) = watched.webhooks()
    assert watched.post(f"/control/webhooks/{delivery['id']}/redeliver/").status_code == 200
    answer = watched.get("/control/wait/?idle=1&timeout=5")
    assert answer.status_code == 200, answer.text
    assert shop.orders() == [sent_before["id"], sent_before["id"], held["id"]]


def test_a_held_webhook_waits_at_most_two_minutes(watched: Sandbox, shop: Shop) -> None:
    """Without another webhook, a held webhook is sent after two minutes, as a retry would be."""
    watched.scenario(webhooks=SWAP_FIRST)
    held = watched.place(by("bank-transfer"))
    watched.place(card(expiration_period="PT5M"))
    watched.settle()
    watched.advance("PT1M59S")
    assert shop.received == []
    watched.advance("PT1S")
    assert shop.orders() == [held["id"]]


@pytest.mark.parametrize("later", [60, 120, 180], ids="second expires {}s later".format)
@pytest.mark.parametrize("advances", [[600], [60] * 10, [299, 1, 300]])
def test_the_order_does_not_depend_on_the_ends_of_the_advances(
    watched: Sandbox, shop: Shop, advances: list[int], later: int
) -> None:
    """The same events send webhooks in the same order and at the same times, in one advance or in many."""
    watched.scenario(webhooks=[{"when": {"status": "expired"}, "then": {"swap": True}}])
    first = watched.place(card(expiration_period="PT5M"))
    second = watched.place(card(expiration_period=f"PT{300 + later}S"))
    for seconds in advances:
        watched.advance(f"PT{seconds}S")
    both = [second["id"], first["id"]] if later <= 120 else [first["id"], second["id"]]
    assert shop.orders() == both
