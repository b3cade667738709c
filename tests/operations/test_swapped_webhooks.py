"""A webhook that is held for a swap is never lost."""

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


def test_the_next_event_releases_it(watched: Sandbox, shop: Shop) -> None:
    """The next event releases a held webhook, even if the event sends none."""
    watched.scenario(webhooks=SWAP_FIRST)
    held = watched.place(by("bank-transfer"))
    watched.place(card(expiration_period="PT5M"))
    watched.settle()
    assert shop.received == []
    watched.advance("PT4M")
    assert shop.orders() == [held["id"]], "the end of an advance is an event, too"
