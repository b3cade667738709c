"""What a suite has met is told like code coverage."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations import coverage
from payment_sandbox.operations.coverage import CellKey, covered_cells, possible_outcomes, refusal_rules
from payment_sandbox.serving.server import Server
from payment_sandbox.testing.project import PaymentSandbox
from tests.support.suites import suite

LINES = [{"merchant_order_line_id": "l", "type": "physical", "name": "Hat", "amount": 1000, "quantity": 1}]
TESTS = """
def test_paid(payment_sandbox, shop):
    payment_sandbox.act(place(payment_sandbox)["id"])


@pytest.mark.payment_scenario("webhook-lost")
def test_declined(payment_sandbox, shop):
    payment_sandbox.act(place(payment_sandbox)["id"], action="fail")


def test_refused(payment_sandbox):
    order = place(payment_sandbox)
    url = f"{payment_sandbox.base_url}/v1/orders/{order['id']}/refunds/"
    assert payment_sandbox.session.post(url, json={"amount": 5}).status_code == 409
"""


def met(sandbox: PaymentSandbox) -> set[str]:
    """What was met of methods and webhooks."""
    project = sandbox._project
    assert project is not None
    return {
        one.case or one.subject for one in covered_cells(project, ()) if one.group in ("method", "webhook")
    }


def place(sandbox: PaymentSandbox, method: str, **more: Any) -> dict[str, Any]:
    """A new order."""
    attempt = {"payment_method": method, **more}
    order = {"currency": "EUR", "amount": 1000, "order_lines": LINES, "transactions": [attempt]}
    answer = sandbox.session.post(
        f"{sandbox.base_url}/v1/orders/", json={**order, "customer": {"first_name": "Ann"}}
    )
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def test_the_ends_of_a_plain_payment(payment_sandbox: PaymentSandbox) -> None:
    """As the customer decides."""
    for action in ("pay", "fail", "cancel"):
        payment_sandbox.act(place(payment_sandbox, "wallet-web")["id"], action=action)
    place(payment_sandbox, "wallet-web")
    payment_sandbox.clock.advance("P1D")
    assert met(payment_sandbox) == {"paid", "declined", "cancelled", "expired"}


def test_the_ends_of_an_authorization(payment_sandbox: PaymentSandbox) -> None:
    """Captured, in part, voided, expired; refunded in part and in full."""
    base = f"{payment_sandbox.base_url}/v1/orders/"
    for amounts in ({"captures": 1000}, {"captures": 600, "voids": 400}, {}):
        order = place(payment_sandbox, "credit-card", capture_mode="manual")
        payment_sandbox.act(order["id"])
        url = f"{base}{order['id']}/transactions/{order['transactions'][0]['id']}"
        for what, cents in amounts.items():
            made = payment_sandbox.session.post(f"{url}/{what}/amount/", json={"amount": cents})
            assert made.status_code == 200, made.text
        if amounts:
            refund = {"amount": 600}
            assert payment_sandbox.session.post(f"{base}{order['id']}/refunds/", json=refund).ok
    payment_sandbox.clock.advance("P1D")
    assert met(payment_sandbox) == {
        "authorized",
        "captured",
        "captured in part",
        "voided",
        "authorization expired",
        "refunded",
        "refunded in part",
    }


@pytest.mark.payment_settings(mode="live")
def test_the_ends_of_a_transfer(payment_sandbox: PaymentSandbox) -> None:
    """In part, too much, and after it had expired."""
    late = place(payment_sandbox, "bank-transfer")
    payment_sandbox.clock.advance("P31D")
    payment_sandbox.act(late["id"], "bank", "credit", amount=1100)
    payment_sandbox.act(place(payment_sandbox, "bank-transfer")["id"], "bank", "credit", amount=5)
    assert met(payment_sandbox) == {"paid", "paid after expiry", "paid in part", "paid too much"}


def test_screenings_and_webhooks(payment_sandbox: PaymentSandbox) -> None:
    """A decline after a day; a webhook that is retried and then lost, and one that fails for good."""
    payment_sandbox.client.change_settings(webhook_url="http://127.0.0.1:9/webhook")
    payment_sandbox.scenario(
        {
            "name": "x",
            "rules": [{"then": {"screening": "needs-time", "then": "declined", "after": "P1D"}}],
            "webhooks": [
                {"when": {"status": "cancelled"}, "then": {"timeout": True}},
                {"when": {"attempt": 1}, "then": {"answer": 503}},
                {"when": {"attempt": 2}, "then": {"drop": True}},
            ],
        }
    )
    place(payment_sandbox, "pay-later-a")
    payment_sandbox.clock.advance("P2D")
    assert met(payment_sandbox) == {
        "declined by screening",
        "screening took time",
        "retried",
        "lost",
        "failed for good",
    }


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_has_ends(method: str) -> None:
    """Each once, and each can be told."""
    ends = possible_outcomes(method)
    known = {value for name, value in vars(coverage).items() if name.isupper() and isinstance(value, str)}
    assert len(ends) == len(set(ends)) >= 4
    assert set(ends) <= known


def test_refusals_are_those_of_the_merchant_api() -> None:
    """By their rules."""
    assert {"CAP-04", "SET-49", "SET-50"} <= set(refusal_rules())
    assert not [rule for rule in refusal_rules() if rule.startswith("CTL-")]


def test_it_is_told_at_the_end(tmp_path: Path) -> None:
    """With what was never met, by how much, and by which tests."""
    ran = suite(tmp_path, TESTS, "--payment-coverage", "--payment-coverage-report=out.json", "-n2")
    assert ran.returncode == 0, ran.stdout
    assert "never: cancelled, expired" in ran.stdout
    assert "only methods used by the suite" in ran.stdout
    told = json.loads((tmp_path / "out.json").read_text())
    rows = {row["row"]: row["cells"] for row in told["rows"]}
    assert rows["wallet-web"]["paid"] == ["test_shop.py::test_paid"]
    assert rows["wallet-web"]["declined"] == ["test_shop.py::test_declined"]
    assert rows["refusals"]["SET-49"] == ["test_shop.py::test_refused"]
    assert rows["webhooks"]["lost"] == ["test_shop.py::test_declined"]
    assert told["percent"] == pytest.approx(100 * 2 / len(rows["wallet-web"]), abs=0.1)


CARELESS = """
def careless(payment_sandbox, webhook_receiver):
    payment_sandbox.client.change_settings(webhook_url=webhook_receiver.url)
    payment_sandbox.act(place(payment_sandbox)["id"])
    payment_sandbox.client.wait(idle=True)


def test_careless(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)
"""
ON_PURPOSE = """

@pytest.mark.payment_review("error", expect=["HOOK-08"])
def test_on_purpose(payment_sandbox, webhook_receiver):
    careless(payment_sandbox, webhook_receiver)
"""


@pytest.mark.parametrize(
    ("tests", "line"), [(CARELESS, "  handled incorrectly: paid"), (CARELESS + ON_PURPOSE, "")]
)
def test_a_mistake_does_not_count(tmp_path: Path, tests: str, line: str) -> None:
    """It is named; a test that makes it on purpose counts."""
    ran = suite(tmp_path, tests, "--payment-coverage", "--payment-coverage-report=out.json")
    (row,) = (each for each in ran.stdout.splitlines() if each.startswith("  wallet-web"))
    assert row.endswith(line or "refund failed"), row
    assert ("handled incorrectly" in row) is bool(line)
    told = json.loads((tmp_path / "out.json").read_text())
    (noted,) = (each for each in told["rows"] if each["row"] == "wallet-web")
    cells, wrong = noted["cells"], noted["wrong"]
    assert wrong["paid"] == ["test_shop.py::test_careless"]
    assert cells["paid"] == ([] if line else ["test_shop.py::test_on_purpose"])


@pytest.mark.prove
def test_what_the_shop_offers_counts(tmp_path: Path) -> None:
    """If it says so, methods that no test has used are in the table, and in the percentage."""
    (tmp_path / "pytest.ini").write_text(
        '[pytest]\npayment_settings = payment_methods = ["wallet-web", "bank-redirect-nl"]\n'
        "payment_coverage_fail_under = 30\n"
    )
    ran = suite(tmp_path, TESTS, "--payment-coverage-report=out.html")
    assert re.search(r"bank-redirect-nl +0 of \d+, +0%", ran.stdout)
    assert "this is below the required 30%" in ran.stdout
    assert ran.returncode == 1
    page = (tmp_path / "out.html").read_text()
    assert "<strong>cancelled: never</strong>" in page
    assert "test_shop.py::test_paid" in page
    again = suite(tmp_path, TESTS, "--payment-coverage", "--payment-coverage-fail-under=5")
    assert again.returncode == 0, again.stdout


def test_a_server_in_another_process_is_asked(tmp_path: Path, server: Server) -> None:
    """Its projects are told in the same way."""
    tests = TESTS.replace("def test_declined(payment_sandbox, shop)", "def test_declined(payment_sandbox)")
    tests = tests.replace("def test_paid(payment_sandbox, shop)", "def test_paid(payment_sandbox)")
    ran = suite(tmp_path, tests, "--payment-coverage-report=out.json", SANDBOX_URL=server.url)
    assert ran.returncode == 0, ran.stdout
    rows = {row["row"]: row["cells"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]}
    assert rows["wallet-web"]["paid"] == ["test_shop.py::test_paid"]
    assert rows["refusals"]["SET-49"] == ["test_shop.py::test_refused"]
    assert list(rows["scenario rules"]) == ["webhook-lost, rule 1"]


def test_it_is_told_only_if_asked_for(tmp_path: Path) -> None:
    """It costs nothing else."""
    assert "coverage" not in suite(tmp_path, TESTS).stdout


def test_a_met_thing_is_a_plain_record() -> None:
    """Workers of pytest-xdist pass it on."""
    assert CellKey(*json.loads(json.dumps(CellKey("method", "wallet-web", "paid")))) == CellKey(
        "method", "wallet-web", "paid"
    )
