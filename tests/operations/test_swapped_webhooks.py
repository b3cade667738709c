"""A webhook that waits for the next one to go first is never lost."""

import pytest

from tests.support.driver import Sandbox, by, card
from tests.support.shop import Shop

SWAP_FIRST = [{"when": {"status": "processing"}, "then": {"swap": True}}]


@pytest.mark.parametrize("timing", ["after_response", "before_response"])
def test_it_comes_after_the_next_one(watched: Sandbox, shop: Shop, timing: str) -> None:
    """Whenever webhooks leave."""
    watched.scenario(webhooks=SWAP_FIRST, settings={"webhook_timing": timing})
    first = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.received == []
    second = watched.place_with_lines("invoice-later-b")
    watched.settle()
    assert shop.orders() == [second["id"], first["id"]]
    assert [webhook["state"] for webhook in watched.webhooks()] == ["delivered", "delivered"]


def test_it_comes_after_another_one_that_is_sent_again(watched: Sandbox, shop: Shop) -> None:
    """A redelivery is a next webhook, too."""
    known = watched.place_with_lines("invoice-later-b")
    watched.settle()
    watched.scenario(webhooks=SWAP_FIRST)
    waiting = watched.place(by("bank-transfer"))
    watched.settle()
    (delivery, _) = watched.webhooks()
    assert watched.post(f"/control/webhooks/{delivery['id']}/redeliver/").status_code == 200
    answer = watched.get("/control/wait/?idle=1&timeout=5")
    assert answer.status_code == 200, answer.text
    assert shop.orders() == [known["id"], known["id"], waiting["id"]]


def test_until_idle_it_waits_for_nobody(watched: Sandbox, shop: Shop) -> None:
    """Where no other webhook comes, it is sent at the end."""
    watched.scenario(webhooks=SWAP_FIRST)
    order = watched.place(by("bank-transfer"))
    watched.settle()
    assert shop.received == []
    watched.advance(until="idle")
    assert shop.orders()[0] == order["id"]


def test_the_next_event_releases_it(watched: Sandbox, shop: Shop) -> None:
    """Though nobody is told of that event; before, it was lost until another webhook came."""
    watched.scenario(webhooks=SWAP_FIRST)
    waiting = watched.place(by("bank-transfer"))
    watched.place(card(expiration_period="PT5M"))
    watched.settle()
    assert shop.received == []
    watched.advance("PT4M")
    assert shop.orders() == [waiting["id"]], "the end of an advance is an event, too"


def test_who_waits_for_idle_is_woken(watched: Sandbox, shop: Shop) -> None:
    """Also where webhooks are sent before the response, and no carrier ever runs."""
    watched.settings(webhook_timing="before_response")
    watched.acted(watched.place(card()), "customer visit")
    assert watched.get("/control/wait/?idle=1&timeout=5").status_code == 200
    assert len(shop.received) == 1
