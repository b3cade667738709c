"""What a shop believes on the way, and what it stores, is judged, too."""

from pathlib import Path

from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios.variation import ShopCall, Step
from pytest_payment_sandbox.rehearsal.books import BookProblem
from pytest_payment_sandbox.rehearsal.exploring import ChangedSteps, Explorer, RunResult, variation_name
from pytest_payment_sandbox.rehearsal.judging import RunVerdict
from tests.rehearsal.test_rehearsing import LOCKED, rehearsed
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


def test_an_answer_that_was_overtaken_takes_nothing_back(tmp_path: Path) -> None:
    """A shop that writes down whatever it reads loses a payment, even if a job finds it again."""
    only = "--payment-rehearse-only=read:3:overtaken"
    code, told, printed = rehearsed(tmp_path, TRUSTS + COMES_BACK, only)
    (finding,) = told["findings"]
    assert code == 1
    assert "got a stale response: " in finding["sentence"], printed
    assert (
        "the shop marked it as paid and later as unpaid, although the shop kept €12.95" in finding["sentence"]
    )
    assert finding["lesson"].endswith("/docs/mistakes/#go-forward-only")
    assert rehearsed(tmp_path, THANKS + COMES_BACK, only)[:2] == (0, {**told, "findings": []})


def test_what_a_shop_stores_has_no_secrets(tmp_path: Path) -> None:
    """The fixture names texts and files; a key in one of them is a finding."""
    traces = """
@pytest.fixture
def payment_traces(payment_sandbox, tmp_path):
    (tmp_path / "shop.db").write_bytes(b"\\xff\\x00 key=" + WHAT)
    return lambda: ["a plain text", tmp_path / "shop.db"]
"""
    leaking = LOCKED + traces.replace("WHAT", "payment_sandbox.api_key.encode()") + COMES_BACK
    leaking = leaking.replace('    shop.test_client().get(f"/thanks/{order_id}")\n', "")
    code, told, printed = rehearsed(tmp_path, leaking, "--payment-rehearse-budget=2s")
    assert code == 1
    sentences = [finding["sentence"] for finding in told["findings"]]
    leak = "without any change: the shop's stored data contains a key, a card number or a CVC"
    assert sentences == [leak], printed
    clean = leaking.replace("payment_sandbox.api_key.encode()", "b'none'")
    assert rehearsed(tmp_path, clean, "--payment-rehearse-budget=2s")[0] == 0
    wrong = suite(tmp_path, clean.replace('["a plain text", ', "[7, "), "--payment-rehearse")
    assert "payment_traces must list strings and file paths, not 7" in wrong.stdout


def test_a_test_that_lets_days_pass_is_not_blamed(tmp_path: Path) -> None:
    """Three days more end its authorization, but it went near the end by itself."""
    days = COMES_BACK.replace(
        "    shop.test_client()", "    payment_sandbox.clock.advance('P13D')\n    shop.test_client()"
    )
    only = "--payment-rehearse-only=action:1:three-days"
    code, told, printed = rehearsed(tmp_path, AUTHORIZES + days, only)
    assert (code, told["findings"]) == (0, []), printed
    short = AUTHORIZES.replace("P14D", "P1D") + COMES_BACK
    code, told, printed = rehearsed(tmp_path, short, only)
    assert "the authorization expired before the shop shipped" in told["findings"][0]["sentence"], printed


def test_what_is_tried_again_fails_the_second_time() -> None:
    """A pair can end in a step that only its first change brings about."""
    asked = ShopCall("GET", "/v1/orders/x")
    webhook = Step("webhook", 1, "the webhook", Delivery("1", "x", "http://shop.example/", "new", NOON))
    read, second = Step("read", 1, "the read", asked), Step("read", 2, "the job's read", asked)
    tried: list[str] = []

    def run(variation: ChangedSteps) -> RunResult:
        name = variation_name(variation)
        tried.append(name)
        is_lost = "webhook:1:lost" in name
        problems = (
            [BookProblem("lost", "nobody looked")] if name == "webhook:1:lost+read:2:unavailable" else []
        )
        steps = [webhook, read, second] if is_lost else [webhook, read]
        return RunResult(RunVerdict(problems, (name,), ()), steps, [], "", "")

    explored = Explorer(run, lambda: True).explore(run(()))
    assert [finding.name for finding in explored.findings] == ["webhook:1:lost+read:2:unavailable"]
    pairs = [name for name in tried if "+" in name]
    assert pairs.index("webhook:1:lost+read:2:unavailable") < len(pairs) / 2
