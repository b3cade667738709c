"""A run that hangs is stopped within the budget, and reported with its place in the code."""

from pathlib import Path

import pytest

from pytest_payment_sandbox.rehearsal.run import SAME_CALLS_BASELINE_MAX, SAME_CALLS_MAX, RepeatedCalls
from tests.rehearsal.test_rehearsing import BOOKS, rehearse_suite
from tests.support.state_files import NOON
from tests.support.suites import suite

TEST = """
def call(payment_sandbox, path, method="get", **how):
    return getattr(payment_sandbox.session, method)(payment_sandbox.base_url + path, timeout=60, **how)

def is_paid(payment_sandbox, order_id):
    try:
        return call(payment_sandbox, f"/v1/orders/{order_id}/").json()["status"] == "completed"
    except CAUGHT:
        return False

def test_it(payment_sandbox):
    order = call(payment_sandbox, "/v1/orders/", "post", json=ORDER).json()
    payment_sandbox.act(order["id"])
    while not is_paid(payment_sandbox, order["id"]):
        AGAIN

def test_another():
    pass
"""
ONLY = "--payment-rehearse-only=action:1:fails"
TWO_IN_TURN = 'call(payment_sandbox, "/v1/merchant/")'


@pytest.mark.parametrize(
    ("caught", "repetition", "repeated_call"),
    [
        ("()", "pass", "GET /v1/orders/"),
        ("Exception", "pass", "GET /v1/orders/"),
        ("Exception", TWO_IN_TURN, "GET /v1/"),
        ("Exception", "call(payment_sandbox, f'/v1/orders/?n={id(object())}')", "GET /v1/orders/"),
        ("Exception", 'call(payment_sandbox, "/v1/orders/", "post", json=ORDER)', "POST /v1/orders/"),
    ],
)
def test_endless_polling_is_a_finding(
    tmp_path: Path, caught: str, repetition: str, repeated_call: str
) -> None:
    """Endless polling is a finding, whatever the shop catches and calls in between."""
    looping = TEST.replace("CAUGHT", caught).replace("        AGAIN", f"        {repetition}")
    code, report, output = rehearse_suite(tmp_path, looping, ONLY)
    assert code == 1, output
    assert any(
        f"the shop polls endlessly: {repeated_call[:3]}" in each["sentence"] for each in report["findings"]
    ), report["findings"]
    assert all("set-time-limits" in each["lesson"] for each in report["findings"])
    assert "1 failed, 1 passed" in output


def test_a_test_that_waits_forever_is_stopped(tmp_path: Path) -> None:
    """A test that advances the clock forever is stopped by the budget."""
    waiting = TEST.replace("CAUGHT", "Exception").replace("AGAIN", "payment_sandbox.clock.advance('PT1S')")
    code, report, output = rehearse_suite(tmp_path, waiting, ONLY, "--payment-rehearse-budget=1s")
    (finding,) = report["findings"]
    assert code == 1
    assert finding["sentence"].startswith("the customer's payment failed: the run did not finish"), output
    assert "in test_it" in finding["timeline"]
    assert "1 failed, 1 passed" in output, "the other test runs as usual"


@pytest.mark.parametrize("loop", ["while True:\n            pass", "__import__('threading').Event().wait()"])
def test_a_loop_without_calls_is_abandoned(tmp_path: Path, loop: str) -> None:
    """A thread without calls cannot be stopped, so the session ends and reports its findings."""
    looping = TEST.replace("CAUGHT", "Exception").replace("AGAIN", loop)
    (tmp_path / "junit.xml").unlink(missing_ok=True)
    options = (ONLY, "--payment-rehearse-budget=1s", f"--junitxml={tmp_path / 'junit.xml'}")
    code, report, output = rehearse_suite(tmp_path, looping, *options)
    (finding,) = report["findings"]
    assert code == 1
    assert 'it was stopped in File "' in finding["sentence"], output
    assert "in test_it" in finding["timeline"]
    assert "1 failed" in output
    assert "hanging code without a call cannot be stopped; tests not run: 1" in output
    assert "did not finish" in (tmp_path / "junit.xml").read_text()


@pytest.mark.prove
def test_a_job_that_hangs_is_abandoned(tmp_path: Path) -> None:
    """A hanging job is also a finding after the end of the unchanged test."""
    suite_text = (
        BOOKS
        + """
def test_it(payment_sandbox, shop):
    place(payment_sandbox)
    def wait():
        while True:
            pass
    payment_sandbox.every("PT2H", wait)
"""
    )
    code, report, output = rehearse_suite(tmp_path, suite_text, "--payment-rehearse-budget=1s")
    assert code == 1
    assert "without any change: the run did not finish" in report["findings"][0]["sentence"], output
    assert "in wait" in report["findings"][0]["timeline"]


@pytest.mark.prove
def test_a_worker_that_hangs_is_replaced(tmp_path: Path) -> None:
    """pytest-xdist replaces a worker that hangs, and runs the other tests."""
    looping = TEST.replace("CAUGHT", "Exception").replace("AGAIN", "while True:\n            pass")
    result = suite(tmp_path, looping, "-n1", ONLY, "--payment-rehearse-budget=1s")
    assert result.returncode == 1
    assert "the run did not finish" in result.stdout
    assert "1 passed" in result.stdout


def test_the_unchanged_test_limits_repeated_calls() -> None:
    """A variation may make twice as many calls as the unchanged test."""
    calls = RepeatedCalls()
    assert not any(calls.is_over("GET /a", NOON) for _ in range(2 * SAME_CALLS_MAX))
    assert SAME_CALLS_BASELINE_MAX > 2 * SAME_CALLS_MAX
    varied_calls = RepeatedCalls()
    varied_calls.set_limit(calls.most_calls)
    assert not any(varied_calls.is_over("GET /a", NOON) for _ in range(4 * SAME_CALLS_MAX))
    assert varied_calls.is_over("GET /a", NOON)
    assert not varied_calls.is_endless
