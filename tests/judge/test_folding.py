"""Long histories are folded: equal failed attempts, and repeated exchanges."""

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop


def test_equal_steps_are_one_row(watched: Sandbox, shop: Shop) -> None:
    """The first attempts of two webhooks that fail in turn stay, and the first of more than two equal reads."""
    shop.answer = lambda received: 500
    order = watched.acted(watched.place(card()), "customer pay")
    watched.advance("PT30M")
    browser = Dashboard(watched)
    for reads, rows in ((2, 2), (4, 1)):
        while watched.get("/control/journal/?count=1&method=GET").json()["count"] < reads:
            watched.read(order)
        story = browser.open(f"orders/{order['id']}/").ids["story"]
        assert story.count("reads the order") == rows
        assert story.count("webhook, attempt") == 4
        assert "attempts 3 to 10 like these, until 12:18:00" in story
    assert "3 more like these, until" in story
