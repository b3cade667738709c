"""A reset restores the initial state, whatever is in flight."""

import pytest

from tests.support.driver import START, Sandbox, by, card, details
from tests.support.shop import Shop


@pytest.mark.rule("CTL-09")
def test_a_reset_is_a_fresh_start(watched: Sandbox, shop: Shop) -> None:
    """Orders, vault, webhooks, journal, scenario, faults, clock and identifiers are reset."""
    watched.scenario({"then": {"customer": "pays", "after": "PT1M"}})
    token_order = watched.pay(watched.place(details(one_click_type="first")))
    first = watched.place(card())
    watched.advance("PT1H")
    watched.put("/control/faults/", {"faults": [{"when": {"method": "PUT"}, "then": {"status": 503}}]})
    assert watched.post("/control/reset/").status_code == 200
    assert watched.get(f"/v1/orders/{first['id']}/").status_code == 404
    assert watched.now() == START
    assert watched.webhooks() == watched.agenda() == []
    assert watched.get("/control/actions/").json()["items"] == []
    assert watched.get("/control/scenario/").json()["name"] == "default"
    assert watched.get("/control/faults/").json() == {"faults": [], "webhooks": []}
    assert watched.get("/control/journal/?count=1").json() == {"count": 1}
    token = token_order["transactions"][0]["payment_method_details"]["vault_token"]
    used = watched.create(details(one_click_type="one-click", vault_token=token, cvc="123"))
    assert used.status_code == 400
    assert watched.get("/control/project/").json()["settings"]["webhook_url"] == shop.url


def test_a_reset_discards_late_results(watched: Sandbox, shop: Shop) -> None:
    """A webhook in flight is not recorded after the reset."""
    arrived, released = shop.hold(500, late=200)
    watched.place(by("bank-transfer"))
    assert arrived.wait(60)
    watched.post("/control/reset/")
    watched.place(by("bank-transfer"))  # the same seed gives the same IDs as before the reset
    released.set()
    watched.settle()
    (delivery,) = watched.webhooks()
    assert len(delivery["attempts"]) == 1
