"""The command and the test that developers copy from an order's page work unchanged."""

import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from payment_sandbox.client.receiver import WebhookReceiver
from tests.support.dashboard import Dashboard, run_in_shell
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Payer, payment_page
from tests.support.suites import passed, suite
from tests.ui.dashboard.test_reproductions import READS


def read_block(sandbox: Sandbox, order: dict[str, Any], name: str) -> str:
    """Return the text of a block on the page of an order."""
    text = Dashboard(sandbox).open(f"orders/{order['id']}/").block(name)
    assert text is not None
    return text


def paid_later(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that is paid on its page after twenty seconds."""
    order = sandbox.place(by("wallet-web"))
    sandbox.advance("PT20S")
    payer = Payer(sandbox)
    payer.press(payer.open(payment_page(order)), "pay")
    return order


def captured(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that is captured in part two days later, with one refused call."""
    order = sandbox.authorized(expiration_period="P7D", extra={"gift": True, "note": None, "to": "O'Neill"})
    sandbox.advance("P2D")
    sandbox.take(order, "captures/amount", {"amount": 500})
    sandbox.take(order, "captures/amount", {"amount": 99_999})
    return order


def declined(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that is declined with a reason."""
    order = sandbox.place(card())
    sandbox.acted(order, "customer fail", reason='Say "no"')
    return order


def expired(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that expires."""
    order = sandbox.place(card())
    sandbox.advance("P2D")
    return order


def by_scenario(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order on which only the scenario acts."""
    sandbox.put("/control/scenario/", {"name": "second-try-works"})
    order = sandbox.place(payment_methods=["credit-card"])
    sandbox.acted(order, "customer choose", payment_method="credit-card")
    sandbox.advance("PT5M")
    return order


def by_hand(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order that is captured, voided and refunded on the dashboard, with odd values in its body."""
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


def notified(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order whose webhooks a shop receives; the test has its own receiver."""
    with closing(WebhookReceiver()) as shop:
        order = sandbox.place(card(), webhook_url=shop.url)
        sandbox.advance("PT1H1.5S")
    sandbox.read(order)
    return order


def refunded(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order with a partial refund, an excessive one, and one that a fault refused."""
    order = sandbox.pay(sandbox.place(card()))
    for amount in (300, 9_999):
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": amount})
    sandbox.put("/control/faults/", {"faults": [{"when": {"method": "POST"}, "then": {"status": 503}}]})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 9_999})
    return order


def acknowledged_late(sandbox: Sandbox) -> dict[str, Any]:
    """Create an order whose webhook the shop acknowledges at the third attempt."""
    with closing(WebhookReceiver()) as shop:
        shop.answer_with(500, 404, 200)
        order = sandbox.place(card(), webhook_url=shop.url)
        sandbox.advance("PT1H")
    sandbox.read(order)
    return order


STORIES: list[Callable[[Sandbox], dict[str, Any]]] = [
    paid_later,
    captured,
    declined,
    expired,
    notified,
    acknowledged_late,
    by_scenario,
    by_hand,
    refunded,
]


def test_the_copied_tests_pass(sandbox: Sandbox, tmp_path: Path) -> None:
    """The copied tests of right orders pass unchanged in the test suite of a merchant with a right shop."""
    tests = [read_block(sandbox, story(sandbox), "test-code") for story in STORIES]
    passed(suite(tmp_path, "\n\n".join([READS.source, *tests])), len(STORIES))
    assert "assert answer.status_code == 409" in tests[STORIES.index(captured)]
    assert 'advance("P2D")' in tests[STORIES.index(captured)].replace("'", '"')
    assert "PT1H1.5S" in tests[STORIES.index(notified)]
    assert "== [300]" in tests[STORIES.index(refunded)]
    assert tests[STORIES.index(refunded)].count("{'status': 503}") == 1
    assert all(test.endswith("    sandbox.review().assert_clean()\n") for test in tests)


def test_a_copied_test_does_not_depend_on_the_current_time(sandbox: Sandbox) -> None:
    """The copied test ends with the order's last event; the control API returns the same test."""
    order = paid_later(sandbox)
    test = read_block(sandbox, order, "test-code")
    assert sandbox.get(f"/control/orders/{order['id']}/review/").json()["test"].strip() == test.strip()
    sandbox.advance("P3D")
    assert read_block(sandbox, order, "test-code") == test


def test_the_copied_command_makes_the_same_order(sandbox: Sandbox) -> None:
    """The command works in a shell with the key in the environment."""
    order = captured(sandbox)
    command = read_block(sandbox, order, "curl")
    assert shlex.split(command)[0] == "curl"
    before = len(sandbox.get("/control/orders/").json()["items"])
    run_in_shell(command, sandbox.key)
    newest, *others = sandbox.get("/control/orders/").json()["items"]
    assert len(others) == before
    assert sandbox.read(newest["id"])["extra"] == order["extra"]


def test_an_order_of_a_qr_code_has_no_copies(sandbox: Sandbox) -> None:
    """An order of a QR code has no command and no test."""
    request = sandbox.post("/v1/bankqr/", {"amount": 500}).json()
    order = sandbox.post(f"/control/bankqr/{request['id']}/scan/").json()
    page = Dashboard(sandbox).open(f"orders/{order['id']}/")
    assert (page.block("curl"), page.block("test-code")) == (None, None)
