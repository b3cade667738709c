"""The outcomes that a suite covers are reported like code coverage."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.judge import coverage
from payment_sandbox.judge.coverage import covered_cells, possible_outcomes, refusal_rules
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.serving.server import Server
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place
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


def covered_outcomes(sandbox: PaymentSandbox) -> set[str]:
    """Return the covered outcomes of methods and webhooks."""
    project = sandbox._project
    assert project is not None
    return {
        cell.case or cell.subject
        for cell in covered_cells(project, ())
        if cell.group in ("method", "webhook")
    }


def create_order(sandbox: PaymentSandbox, method: str, **fields: Any) -> str:
    """Create an order; return its id."""
    attempt = {"payment_method": method, **fields}
    customer = {"first_name": "Ann"}
    return place(sandbox, amount=1000, order_lines=LINES, transactions=[attempt], customer=customer)


def test_outcomes_of_a_plain_payment(payment_sandbox: PaymentSandbox) -> None:
    """A payment covers one outcome for each decision of the customer."""
    for action in ("pay", "fail", "cancel"):
        payment_sandbox.act(create_order(payment_sandbox, "wallet-web"), action=action)
    create_order(payment_sandbox, "wallet-web")
    payment_sandbox.clock.advance("P1D")
    assert covered_outcomes(payment_sandbox) == {"paid", "declined", "cancelled", "expired"}


def test_outcomes_of_an_authorization(payment_sandbox: PaymentSandbox) -> None:
    """Authorizations cover captures, voids, expiry and refunds, in part and in full."""
    base = f"{payment_sandbox.base_url}/v1/orders/"
    for amounts in ({"captures": 1000}, {"captures": 600, "voids": 400}, {}):
        order_id = create_order(payment_sandbox, "credit-card", capture_mode="manual")
        url = f"{base}{order_id}/transactions/{payment_sandbox.act(order_id)['transactions'][0]['id']}"
        for action, cents in amounts.items():
            response = payment_sandbox.session.post(f"{url}/{action}/amount/", json={"amount": cents})
            assert response.status_code == 200, response.text
        if amounts:
            refund = {"amount": 600}
            assert payment_sandbox.session.post(f"{base}{order_id}/refunds/", json=refund).ok
    payment_sandbox.clock.advance("P1D")
    assert covered_outcomes(payment_sandbox) == {
        "authorized",
        "captured",
        "captured in part",
        "voided",
        "authorization expired",
        "refunded",
        "refunded in part",
    }


@pytest.mark.payment_settings(mode="live")
def test_outcomes_of_a_transfer(payment_sandbox: PaymentSandbox) -> None:
    """Transfers cover partial, late and excess payments."""
    late = create_order(payment_sandbox, "bank-transfer")
    payment_sandbox.clock.advance("P31D")
    payment_sandbox.act(late, "bank", "credit", amount=1100)
    payment_sandbox.act(create_order(payment_sandbox, "bank-transfer"), "bank", "credit", amount=5)
    assert covered_outcomes(payment_sandbox) == {"paid", "paid after expiry", "paid in part", "paid too much"}


def test_screenings_and_webhooks(payment_sandbox: PaymentSandbox) -> None:
    """Coverage includes slow screenings, and webhooks that are retried, lost or failed."""
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
    create_order(payment_sandbox, "pay-later-a")
    payment_sandbox.clock.advance("P2D")
    assert covered_outcomes(payment_sandbox) == {
        "declined by screening",
        "screening took time",
        "retried",
        "lost",
        "failed for good",
    }


@pytest.mark.parametrize("method", METHOD_NAMES)
def test_every_method_has_outcomes(method: str) -> None:
    """Each method has distinct outcomes, which all are known."""
    outcomes = possible_outcomes(method)
    known = {value for name, value in vars(coverage).items() if name.isupper() and isinstance(value, str)}
    assert len(outcomes) == len(set(outcomes)) >= 4
    assert set(outcomes) <= known


def test_refusals_are_those_of_the_merchant_api() -> None:
    """Refusals of the merchant API are part of the coverage, those of the control API are not."""
    assert {"CAP-04", "SET-49", "SET-50"} <= set(refusal_rules())
    assert not [rule for rule in refusal_rules() if rule.startswith("CTL-")]


def test_coverage_is_reported_at_the_end(tmp_path: Path) -> None:
    """The report has percentages, uncovered outcomes, and the tests of each covered outcome."""
    result = suite(tmp_path, TESTS, "--payment-coverage", "--payment-coverage-report=out.json", "-n2")
    assert result.returncode == 0, result.stdout
    assert "never: cancelled, expired" in result.stdout
    assert "only methods used by the suite" in result.stdout
    report = json.loads((tmp_path / "out.json").read_text())
    rows = {row["row"]: row["cells"] for row in report["rows"]}
    assert rows["wallet-web"]["paid"] == ["test_shop.py::test_paid"]
    assert rows["wallet-web"]["declined"] == ["test_shop.py::test_declined"]
    assert rows["refusals"]["SET-49"] == ["test_shop.py::test_refused"]
    assert rows["webhooks"]["lost"] == ["test_shop.py::test_declined"]
    assert report["percent"] == pytest.approx(100 * 2 / len(rows["wallet-web"]), abs=0.1)


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
    """An incorrectly handled outcome is not covered unless the test expects the mistake."""
    result = suite(tmp_path, tests, "--payment-coverage", "--payment-coverage-report=out.json")
    (row,) = (each for each in result.stdout.splitlines() if each.startswith("  wallet-web"))
    assert row.endswith(line or "refund failed"), row
    assert ("handled incorrectly" in row) is bool(line)
    report = json.loads((tmp_path / "out.json").read_text())
    (table_row,) = (each for each in report["rows"] if each["row"] == "wallet-web")
    cells, wrong = table_row["cells"], table_row["wrong"]
    assert wrong["paid"] == ["test_shop.py::test_careless"]
    assert cells["paid"] == ([] if line else ["test_shop.py::test_on_purpose"])


@pytest.mark.prove
def test_all_configured_methods_count(tmp_path: Path) -> None:
    """Configured methods count in the table and the percentage even if no test uses them."""
    (tmp_path / "pytest.ini").write_text(
        '[pytest]\npayment_settings = payment_methods = ["wallet-web", "bank-redirect-nl"]\n'
        "payment_coverage_fail_under = 30\n"
    )
    result = suite(tmp_path, TESTS, "--payment-coverage-report=out.json")
    assert re.search(r"bank-redirect-nl +0 of \d+, +0%", result.stdout)
    assert "this is below the required 30%" in result.stdout
    assert result.returncode == 1
    rows = {row["row"]: row["cells"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]}
    assert rows["wallet-web"]["cancelled"] == []
    assert rows["wallet-web"]["paid"] == ["test_shop.py::test_paid"]
    passing = suite(tmp_path, TESTS, "--payment-coverage", "--payment-coverage-fail-under=5")
    assert passing.returncode == 0, passing.stdout


def test_a_server_in_another_process_is_covered(tmp_path: Path, server: Server) -> None:
    """The projects of a server in another process are covered in the same manner."""
    tests = TESTS.replace("def test_declined(payment_sandbox, shop)", "def test_declined(payment_sandbox)")
    tests = tests.replace("def test_paid(payment_sandbox, shop)", "def test_paid(payment_sandbox)")
    result = suite(tmp_path, tests, "--payment-coverage-report=out.json", SANDBOX_URL=server.url)
    assert result.returncode == 0, result.stdout
    rows = {row["row"]: row["cells"] for row in json.loads((tmp_path / "out.json").read_text())["rows"]}
    assert rows["wallet-web"]["paid"] == ["test_shop.py::test_paid"]
    assert rows["refusals"]["SET-49"] == ["test_shop.py::test_refused"]
    assert list(rows["scenario rules"]) == ["webhook-lost, rule 1"]


def test_coverage_is_reported_on_request_only(tmp_path: Path) -> None:
    """Without an option, coverage is not reported."""
    assert "coverage" not in suite(tmp_path, TESTS).stdout
