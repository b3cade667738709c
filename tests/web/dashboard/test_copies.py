"""What developers copy from an order works as it is: a command, and a test."""

import re
import shlex
import subprocess
from collections.abc import Callable
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.client.receiver import WebhookReceiver
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Payer, payment_page
from tests.support.suites import passed, suite


def copied(sandbox: Sandbox, order: dict[str, Any], name: str) -> str:
    """The text of a block on the page of an order."""
    page = Dashboard(sandbox).open(f"orders/{order['id']}/").answer.text
    found = re.search(rf'<pre[^>]* id="{name}">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def paid_later(sandbox: Sandbox) -> dict[str, Any]:
    """On the page, after twenty seconds."""
    order = sandbox.place(by("wallet-web"))
    sandbox.advance("PT20S")
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "pay")
    return order


def captured(sandbox: Sandbox) -> dict[str, Any]:
    """In part, two days later; one call is refused."""
    order = sandbox.authorized(expiration_period="P7D", extra={"gift": True, "note": None, "to": "O'Neill"})
    sandbox.advance("P2D")
    sandbox.take(order, "captures/amount", {"amount": 500})
    sandbox.take(order, "captures/amount", {"amount": 99_999})
    return order


def declined(sandbox: Sandbox) -> dict[str, Any]:
    """With a reason."""
    order = sandbox.place(card())
    sandbox.acted(order, "customer fail", reason='Say "no"')
    return order


def expired(sandbox: Sandbox) -> dict[str, Any]:
    """After two days in which nobody came."""
    order = sandbox.place(card())
    sandbox.advance("P2D")
    return order


def by_scenario(sandbox: Sandbox) -> dict[str, Any]:
    """Nobody acts but the scenario."""
    sandbox.put("/control/scenario/", {"name": "second-try-works"})
    order = sandbox.place(payment_methods=["credit-card"])
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    sandbox.advance("PT5M")
    return order


def by_hand(sandbox: Sandbox) -> dict[str, Any]:
    """On the dashboard: a method, a part captured, the rest voided, a part refunded; odd values in the body."""
    order = sandbox.place(
        by("credit-card", capture_mode="manual", expiration_period="P7D"),
        extra={"list": [True, None, {"deep": "x" * 90}], "quote": "'\"\\"},
    )
    sandbox.get(f"/v1/orders/{order['id']}/transactions/a%22);import%20os;(%22{{}}/captures/")
    sandbox.pay(order)
    browser = Dashboard(sandbox)
    for action, euros in (("capture", "4.00"), ("void", "6.00"), ("refund", "1.00")):
        page = browser.open(f"orders/{order['id']}/")
        browser.press(page, f"merchant {action}", amount=euros)
    sandbox.post(f"/v1/orders/{order['id']}/transactions/a%22);import%20os;(%22{{}}/captures/")
    return order


def told(sandbox: Sandbox) -> dict[str, Any]:
    """To a shop, of its only status; the test has a receiver of its own."""
    with closing(WebhookReceiver()) as shop:
        order = sandbox.place(card(), webhook_url=shop.url)
        sandbox.advance("PT1H1.5S")
    sandbox.read(order)
    return order


def refunded(sandbox: Sandbox) -> dict[str, Any]:
    """In part; a second refund is too much, and a third one met a fault."""
    order = sandbox.pay(sandbox.place(card()))
    for amount in (300, 9_999):
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": amount})
    sandbox.put("/control/faults/", {"faults": [{"when": {"method": "POST"}, "then": {"status": 503}}]})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 9_999})
    return order


def answered_in_the_end(sandbox: Sandbox) -> dict[str, Any]:
    """By a shop that fails twice, which the third attempt puts right."""
    with closing(WebhookReceiver()) as shop:
        shop.answer_with(500, 404, 200)
        order = sandbox.place(card(), webhook_url=shop.url)
        sandbox.advance("PT1H")
    sandbox.read(order)
    return order


MAKES: list[Callable[[Sandbox], dict[str, Any]]] = [
    paid_later,
    captured,
    declined,
    expired,
    told,
    answered_in_the_end,
    by_scenario,
    by_hand,
    refunded,
]


def test_the_copied_tests_pass(sandbox: Sandbox, tmp_path: Path) -> None:
    """In the suite of a merchant, as they stand."""
    tests = [copied(sandbox, make(sandbox), "test-code") for make in MAKES]
    assert all(test.startswith("import pytest\n") for test in tests)
    passed(suite(tmp_path, "\n\n".join(tests)), len(MAKES))
    assert "assert answer.status_code == 409" in tests[MAKES.index(captured)]
    assert 'advance("P2D")' in tests[MAKES.index(captured)].replace("'", '"')
    assert "['expired']" in tests[MAKES.index(told)]
    assert "PT1H1.500000S" in tests[MAKES.index(told)]
    assert "== [300]" in tests[MAKES.index(refunded)]
    assert tests[MAKES.index(refunded)].count("a fault changed") == 1
    assert "answer_with(500, 404, 200)" in tests[MAKES.index(answered_in_the_end)]
    assert not any("review()" in test for test in tests)


def test_a_copied_test_fails_where_the_outcome_differs(sandbox: Sandbox, tmp_path: Path) -> None:
    """Each of its assertions, not the last one only."""
    test = copied(sandbox, captured(sandbox), "test-code")
    wrong = test.replace("status_code == 409", "status_code == 200")
    assert wrong != test
    assert "1 failed" in suite(tmp_path, wrong).stdout


def test_a_copied_test_does_not_depend_on_when_one_looks(sandbox: Sandbox) -> None:
    """It ends with what happened last."""
    order = paid_later(sandbox)
    test = copied(sandbox, order, "test-code")
    sandbox.advance("P3D")
    assert copied(sandbox, order, "test-code") == test


def test_the_copied_command_makes_the_same_order(sandbox: Sandbox) -> None:
    """Pasted into a shell, with the key in the environment."""
    order = captured(sandbox)
    command = copied(sandbox, order, "curl")
    assert shlex.split(command)[0] == "curl"
    before = len(sandbox.get("/control/orders/").json()["items"])
    subprocess.run(
        ["bash", "-euc", command],
        env={"PATH": "/usr/bin:/bin", "SANDBOX_API_KEY": sandbox.key},
        check=True,
        capture_output=True,
        timeout=20,
    )
    newest, *others = sandbox.get("/control/orders/").json()["items"]
    assert len(others) == before
    assert sandbox.read(newest["id"])["extra"] == order["extra"]


@pytest.mark.parametrize("name", ["curl", "test-code"])
def test_an_order_that_no_request_made_has_none(sandbox: Sandbox, name: str) -> None:
    """Such as one of a QR code, or one from a snapshot."""
    asked = sandbox.post("/v1/bankqr/", {"amount": 500}).json()
    order = sandbox.post(f"/control/bankqr/{asked['id']}/scan/").json()
    page = Dashboard(sandbox).open(f"orders/{order['id']}/").answer.text
    assert re.search(rf'<pre[^>]* id="{name}"', page) is None
