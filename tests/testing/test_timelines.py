"""The report of a failing test: its traceback ends at the line of the test, and its project's timeline follows."""

from pathlib import Path

import pytest
import requests

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.in_process import ORDER, place
from tests.support.suites import suite

FAILING = """
def test_that_fails(payment_sandbox, shop):
    payment_sandbox.scenario({"name": "mine", "rules": [{"when": {"amount": 5}, "then": {"customer": "pays"}}]})
    order = place(payment_sandbox)
    payment_sandbox.act(order["id"])
    payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/{order['id']}/refunds/", json={"amount": 9999})
    assert False
"""


def test_a_failure_ends_with_the_project_s_timeline(tmp_path: Path) -> None:
    """The timeline lists requests, refusals with their rules, scenario rules, statuses and webhooks."""
    result = suite(tmp_path, FAILING)
    assert result.returncode == 1
    _, _, report = result.stdout.partition("payment sandbox")
    lines = [
        "scenario mine",
        "POST /v1/orders/ -> 201",
        "no rule matched; nearest is rule 1: amount expected 5, was 1295",
        " is new",
        " is processing",
        " is completed",
        ", attempt 1: 200",
        "/refunds/ -> 409, rule SET-49",
        "RefundExceedsCaptured: 9999 cents is too much: 1295 cents are left to refund",
    ]
    places = [report.index(line) for line in lines]
    causes = [place for line, place in zip(lines, places, strict=True) if not line.startswith("no rule")]
    assert causes == sorted(causes), "causes precede their effects"


def test_calls_are_shown_with_what_they_gave(payment_sandbox: PaymentSandbox) -> None:
    """The timeline shows statuses that reads returned and faults in words, and says if no call arrived."""
    hint = "no call with this project's key has arrived\n    Give the shop's client the address of"
    assert hint in payment_sandbox.timeline()
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    for path in (f"/v1/orders/{order_id}/", "/v1/orders/nope/"):
        payment_sandbox.session.get(f"{payment_sandbox.base_url}{path}")
    payment_sandbox.client.faults([{"when": {"nth": 1}, "then": {"reset": True, "phase": "after"}}])
    with pytest.raises(requests.ConnectionError):
        place(payment_sandbox)
    timeline = payment_sandbox.timeline()
    assert "no call with" not in timeline
    assert f"GET /v1/orders/{order_id}/ -> 200: completed\n" in timeline
    assert "GET /v1/orders/nope/ -> 404, rule" in timeline
    assert "-> 201, fault: response lost, connection cut\n" in timeline


def test_a_missing_webhook_url_is_reported(payment_sandbox: PaymentSandbox) -> None:
    """The timeline reports a missing webhook_url with its remedy."""
    payment_sandbox.act(place(payment_sandbox))
    assert payment_sandbox.timeline().endswith(
        "2 status changes sent no webhook: neither the project nor the order has a webhook_url\n"
        "    In a test, call payment_sandbox.deliver_to(app). Otherwise make the shop listen at an address, "
        "and set webhook_url to it, in the order or in the project's settings."
    )


@pytest.mark.parametrize(
    ("key", "status", "reason"),
    [("sandbox-key", 201, "with sandbox-key, the key of the first project"), ("nope", 401, "no project has")],
)
def test_a_call_with_another_key_is_in_the_timeline(
    payment_sandbox: PaymentSandbox,
    payment_sandbox_server: PaymentSandboxServer,
    key: str,
    status: int,
    reason: str,
) -> None:
    """The timeline shows calls with the key of another project or an unknown key."""
    before = payment_sandbox.timeline()
    address = f"{payment_sandbox.base_url}/v1/orders/"
    answer = payment_sandbox.session.post(address, json=ORDER, auth=(key, ""))
    assert answer.status_code == status
    report = payment_sandbox.timeline()
    assert f"POST /v1/orders/ -> {status}: {reason}" in report
    assert "no call with" in before
    assert "no call with" not in report
    with payment_sandbox_server.project() as later:
        assert reason not in later.timeline()
    place(payment_sandbox)
    is_listed = key == "nope"  # a webhook handler may have another key than the checkout
    assert (reason in payment_sandbox.timeline()) is is_listed


ODD = """
import asyncio

@pytest.fixture
def broken(payment_sandbox):
    place(payment_sandbox)
    raise ValueError("the fixture fails")

def test_whose_fixture_fails(broken):
    pass

def test_with_a_late_fixture(request):
    place(request.getfixturevalue("payment_sandbox"))
    assert False

def test_a_refusal(payment_sandbox):
    payment_sandbox.act("no-such-order")

def test_a_refusal_on_a_loop(payment_sandbox):
    asyncio.run(payment_sandbox.aio.act("no-such-order"))
"""


def test_every_failure_has_its_timeline_and_no_lines_of_the_sandbox(tmp_path: Path) -> None:
    """So have failing and late fixtures, without captured output; tracebacks end at the line of the test."""
    output = suite(tmp_path, ODD, "--tb=short", "--show-capture=no").stdout
    failures = output.partition("short test summary")[0].split("___ test_")[1:]
    failures += output.partition("short test summary")[0].split("setup of test_")[1:]
    assert output.count("POST /v1/orders/ -> 201") == 2, output
    for failure in failures:
        traceback, is_shown, _ = failure.partition("- payment sandbox -")
        assert is_shown, output
        assert "payment_sandbox/" not in traceback, traceback
    assert output.count("SandboxError: 404") >= 2, output
