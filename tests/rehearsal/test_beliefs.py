"""Rehearsals check a shop's books during a run, and its stored data."""

from pathlib import Path

import pytest

from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.variation import ShopCall, Step
from pytest_payment_sandbox.rehearsal.changes import ChangedSteps, variation_name
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from pytest_payment_sandbox.rehearsal.planning import Run
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem
from tests.rehearsal.test_planning import drive
from tests.rehearsal.test_rehearsing import LOCKED, rehearse_suite
from tests.support.state_files import NOON
from tests.support.suites import suite

THANKS = LOCKED.replace(
    '    @app.post("/webhook")',
    """    @app.get("/thanks/<order_id>")
    def thanks(order_id):
        look(order_id)
        return "thanks"

    @app.post("/webhook")""",
)
TRUSTS = THANKS.replace(
    '        if order.json()["status"] == "completed":\n            app.paid[order_id] = 1295\n',
    "        is_paid = order.json()['status'] == 'completed'\n"
    "        app.paid[order_id] = 1295 if is_paid else 0\n"
    "        if is_paid:\n",
).replace("if is_news:", "if is_news and order_id not in app.mails:")
COMES_BACK = """
def test_a_customer_comes_back(payment_sandbox, shop):
    order_id = bought(payment_sandbox, shop)
    shop.test_client().get(f"/thanks/{order_id}")
"""
AUTHORIZES = THANKS.replace(
    "json=ORDER",
    "json=ORDER | {'transactions': [{'payment_method': 'credit-card', 'capture_mode': 'manual',"
    " 'expiration_period': 'P14D'}]}",
)


def test_a_stale_response_does_not_undo_a_payment(tmp_path: Path) -> None:
    """A shop that trusts a stale response loses a payment, which is a finding."""
    only = "--payment-rehearse-only=read:3:overtaken"
    code, report, output = rehearse_suite(tmp_path, TRUSTS + COMES_BACK, only)
    (finding,) = report["findings"]
    assert code == 1
    assert "got a stale response: " in finding["sentence"], output
    assert (
        "the shop marked it as paid and later as unpaid, although the shop kept €12.95" in finding["sentence"]
    )
    assert finding["lesson"].endswith("/docs/pages/mistakes.md#go-forward-only")
    expected = {**report, "findings": [], "alike": 1}
    assert rehearse_suite(tmp_path, THANKS + COMES_BACK, only)[:2] == (0, expected)


def test_a_stored_secret_is_a_finding(tmp_path: Path) -> None:
    """A key in the texts or files of payment_traces is a finding."""
    traces = """
@pytest.fixture
def payment_traces(payment_sandbox, tmp_path):
    (tmp_path / "shop.db").write_bytes(b"\\xff\\x00 key=" + WHAT)
    return lambda: ["a plain text", tmp_path / "shop.db"]
"""
    leaking = LOCKED + traces.replace("WHAT", "payment_sandbox.api_key.encode()") + COMES_BACK
    leaking = leaking.replace('    shop.test_client().get(f"/thanks/{order_id}")\n', "")
    code, report, output = rehearse_suite(tmp_path, leaking, "--payment-rehearse-budget=2s")
    assert code == 1
    sentences = [finding["sentence"] for finding in report["findings"]]
    leak = "without any change: the shop's stored data contains a key, a card number or a CVC"
    assert sentences == [leak], output
    clean = leaking.replace("payment_sandbox.api_key.encode()", "b'none'")
    assert rehearse_suite(tmp_path, clean, "--payment-rehearse-budget=2s")[0] == 0
    wrong = suite(tmp_path, clean.replace('["a plain text", ', "[7, "), "--payment-rehearse")
    assert "payment_traces must list strings and file paths, not 7" in wrong.stdout


def test_a_test_that_advances_days_has_no_finding(tmp_path: Path) -> None:
    """Three more days are no finding if the test itself comes near the end of its authorization."""
    days = COMES_BACK.replace(
        "    shop.test_client()", "    payment_sandbox.clock.advance('P13D')\n    shop.test_client()"
    )
    only = "--payment-rehearse-only=action:1:three-days"
    code, report, output = rehearse_suite(tmp_path, AUTHORIZES + days, only)
    assert (code, report["findings"]) == (0, []), output
    short = AUTHORIZES.replace("P14D", "P1D") + COMES_BACK
    code, report, output = rehearse_suite(tmp_path, short, only)
    assert "the authorization expired before the shop shipped" in report["findings"][0]["sentence"], output


TRUSTS_PROCESSING = LOCKED.replace(
    '        if order.json()["status"] == "completed":\n            app.paid[order_id] = 1295\n',
    "        is_paid = order.json()['status'] in ('processing', 'completed')\n"
    "        app.paid[order_id] = 1295 if is_paid else 0\n"
    "        if is_paid and order_id not in app.mails:\n",
)
GIVES_UP = (
    LOCKED.replace(
        "lambda: [look(order_id) for order_id, paid in app.paid.items() if not paid])",
        "lambda: app.given_up.update(order_id for order_id, paid in app.paid.items() if not paid))\n"
        "    app.given_up = set()",
    )
    .replace('"PT1H"', '"PT1M"')
    .replace("1295, paid)", "1295, paid, cancelled=order_id in shop.given_up)")
)
A_SALE = """
def test_a_sale(payment_sandbox, shop):
    bought(payment_sandbox, shop)
"""


@pytest.mark.parametrize(
    ("shop", "variation", "words"),
    [
        (TRUSTS_PROCESSING, "opens-page", "the shop marks it as paid, but no payment was made"),
        (GIVES_UP, "late-on-page", "the shop cancelled the purchase, but kept €12.95"),
    ],
)
def test_a_customer_may_open_the_page_and_not_pay_at_once(
    tmp_path: Path, shop: str, variation: str, words: str
) -> None:
    """An order in progress is not paid yet, and can still be paid after the shop's own timer."""
    only = f"--payment-rehearse-only=action:1:{variation}"
    code, report, output = rehearse_suite(tmp_path, shop + A_SALE, only)
    assert code == 1, output[-3000:]
    assert words in report["findings"][0]["sentence"]
    assert rehearse_suite(tmp_path, LOCKED + A_SALE, only)[0] == 0


@pytest.mark.parametrize("days", [2, 7])
def test_an_authorization_is_checked_until_its_end(tmp_path: Path, days: int) -> None:
    """A shop that drops a sale before its authorization ends is found, however many days it lasts."""
    drops = AUTHORIZES.replace("P14D", f"P{days}D").replace(
        'payment_sandbox.every("PT1H"',
        'payment_sandbox.every("PT30H", lambda: app.paid.update('
        'dict.fromkeys(app.paid, 0)))\n    payment_sandbox.every("P60D"',
    )
    assert drops.count("PT30H") == 1
    _, report, output = rehearse_suite(tmp_path, drops + A_SALE, "--payment-rehearse-only=unchanged")
    assert any(
        "authorized the payment, but the shop has not" in each["sentence"] for each in report["findings"]
    ), output[-3000:]


def test_a_pair_may_change_a_step_caused_by_its_first_change() -> None:
    """A pair can change a step that occurs only because of its first change."""
    call = ShopCall("GET", "/v1/orders/x")
    webhook = Step("webhook", 1, "the webhook", Delivery("1", "x", "http://shop.example/", "new", NOON))
    read, second = Step("read", 1, "the read", call), Step("read", 2, "the job's read", call)
    names: list[str] = []

    def run(variation: ChangedSteps) -> Run:
        name = variation_name(variation)
        names.append(name)
        is_lost = "webhook:1:lost" in name
        problems = (
            [BookProblem("lost", "the order was not read")]
            if name == "webhook:1:lost+read:2:unavailable"
            else []
        )
        steps = [webhook, read, second] if is_lost else [webhook, read]
        return Run(RunVerdict(problems, (name,), ()), steps)

    outcome = drive(run)
    assert [finding.name for finding in outcome.findings] == ["webhook:1:lost+read:2:unavailable"]
    pairs = [name for name in names if "+" in name]
    assert pairs.index("webhook:1:lost+read:2:unavailable") < len(pairs) / 2
