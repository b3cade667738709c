"""An order's page can show its state at an earlier moment."""

import re
from collections.abc import Iterator
from itertools import count, groupby
from typing import Any

import pytest

from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card

MOMENT = re.compile(r'data-testid="moment".*?</div>', re.DOTALL)
MONEY = re.compile(r"<li[^>]*><b>(€[^<]+)</b> ([a-z ]+)")
PILL = re.compile(r'class="pill[^"]*"[^>]*>([^<]+)<')


def moments(sandbox: Sandbox, order: dict[str, Any]) -> Iterator[str]:
    """Return the part of an order's page about each moment, in order."""
    for number in count(1):
        page = Dashboard(sandbox).open(f"orders/{order['id']}/?at={number}").answer.text
        moment = MOMENT.search(page)
        if moment is None:
            return
        yield moment[0]


def money(text: str) -> dict[str, str]:
    """Return the amounts on a page by label."""
    return {name.strip(): amount for amount, name in MONEY.findall(text)}


def changes(values: Iterator[Any]) -> list[Any]:
    """Return the values without consecutive repetitions."""
    return [value for value, _ in groupby(values)]


def captured_in_parts(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order with captures by the shop and by hand, a refused call, a void and a refund."""
    order = sandbox.authorized(expiration_period="P7D")
    sandbox.take(order, "captures/amount", {"amount": 500})
    sandbox.take(order, "captures/amount", {"amount": 99_999})
    browser = Dashboard(sandbox)
    for action, euros in (("capture", "3.00"), ("void", "1.00")):
        browser.press(browser.open(f"orders/{order['id']}/"), f"merchant {action}", amount=euros)
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 200})
    return order


@pytest.mark.parametrize("clock", ["running", "frozen@2027-01-01T00:00:00Z"])
def test_money_and_statuses_at_each_moment(sandbox: Sandbox, clock: str) -> None:
    """Amounts and statuses are correct even if all events share one sandbox time."""
    sandbox.patch("/control/project/", {"clock": clock})
    order = captured_in_parts(sandbox)
    texts = list(moments(sandbox, order))
    assert changes(PILL.findall(text)[0] for text in texts) == ["new", "processing", "completed"]
    assert changes(money(text).get("captured") for text in texts) == [None, "€0.00", "€5.00", "€8.00"]
    assert changes(money(text).get("voided") for text in texts) == [None, "€1.00"]
    assert changes(money(text).get("refunded") for text in texts) == [None, "€2.00"]
    assert changes(money(text).get("still reserved") for text in texts) == [
        *(None, "€20.00", "€15.00", "€12.00", "€11.00"),
    ]
    now = Dashboard(sandbox).open(f"orders/{order['id']}/").answer.text
    assert money(texts[-1]) == money(now.partition('id="moment"')[0])


def test_a_payment_and_what_the_shop_believed(sandbox: Sandbox) -> None:
    """The payment appears immediately; the shop knows of it after reading the order."""
    order = sandbox.place(card())
    sandbox.pay(order)
    sandbox.read(order)
    texts = list(moments(sandbox, order))
    assert changes("received" in money(text) for text in texts) == [False, True]
    believed = [
        "outdated" if "≠" in text else "nothing" if "received nothing" in text else "current"
        for text in texts
    ]
    assert changes(iter(believed)) == ["nothing", "current", "outdated", "current"]


def test_a_delayed_capture(sandbox: Sandbox) -> None:
    """The delayed capture appears after seven days, and the remaining time is relative to the moment."""
    order = sandbox.authorized(capture_mode="delayed", expiration_period="P7D")
    sandbox.advance("P3D")
    sandbox.read(order)
    sandbox.advance("P5D")
    texts = list(moments(sandbox, order))
    assert changes(money(text).get("captured") for text in texts) == [None, "€0.00", "€20.00"]
    assert any("expires in 4 d" in text for text in texts)


def test_a_capture_whose_response_was_lost(sandbox: Sandbox) -> None:
    """The capture is shown at its own time, as no response in the history reports it."""
    order = sandbox.authorized(expiration_period="P7D")
    fault = {"when": {"method": "POST"}, "then": {"status": 503, "phase": "after"}}
    sandbox.advance("PT1H")
    sandbox.put("/control/faults/", {"faults": [fault]})
    sandbox.take(order, "captures/amount", {"amount": 500})
    texts = list(moments(sandbox, order))
    assert changes(money(text).get("captured") for text in texts) == [None, "€0.00", "€5.00"]


def test_two_attempts(sandbox: Sandbox) -> None:
    """A failed attempt shows the order's status and no money received."""
    order = sandbox.place(by("wallet-web"))
    sandbox.acted(order, "customer fail")
    texts = list(moments(sandbox, order))
    assert changes(PILL.findall(text)[0] for text in texts)[-1] == sandbox.read(order)["status"]
    assert all("received" not in money(text) for text in texts)


@pytest.mark.parametrize("at", ["0", "-1", "99999", "9" * 5000, "x", "１", ""])
def test_an_invalid_moment_shows_the_present(sandbox: Sandbox, at: str) -> None:
    """An invalid moment shows the present state."""
    order = sandbox.place(card())
    page = Dashboard(sandbox).open(f"orders/{order['id']}/?at={at}").answer.text
    assert MOMENT.search(page) is None
    assert " later" not in page.partition('id="picture"')[2].partition('data-testid="story"')[0]


def test_an_action_leads_to_the_present(sandbox: Sandbox) -> None:
    """After an action the page shows the present state and keeps the filters."""
    order = sandbox.authorized(expiration_period="P7D")
    browser = Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/?at=1&status=completed")
    assert 'name="status" value="completed"' in page.answer.text
    after = browser.press(page, "merchant capture", amount="4.00")
    assert MOMENT.search(after.answer.text) is None
    assert after.url.endswith("?status=completed")
    assert money(after.answer.text)["captured"] == "€4.00"
