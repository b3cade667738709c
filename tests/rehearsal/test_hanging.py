"""A run that hangs is given up, and told with the place where it was: it takes no more than the budget."""

from pathlib import Path

import pytest

from payment_sandbox.serving.realtime import monotonic_seconds
from pytest_payment_sandbox.rehearsal.run import SAME_CALLS_BASELINE_MAX, SAME_CALLS_MAX, RepeatedCalls
from tests.rehearsal.test_rehearsing import BOOKS, rehearsed
from tests.support.state_files import NOON
from tests.support.suites import suite

TEST = """
def call(payment_sandbox, path, method="get", **how):
    return getattr(payment_sandbox.session, method)(payment_sandbox.base_url + path, timeout=5, **how)

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
    ("caught", "again", "endless"),
    [
        ("()", "pass", "GET /v1/orders/"),
        ("Exception", "pass", "GET /v1/orders/"),
        ("Exception", TWO_IN_TURN, "GET /v1/"),
        ("Exception", "call(payment_sandbox, f'/v1/orders/?n={id(object())}')", "GET /v1/orders/"),
        ("Exception", 'call(payment_sandbox, "/v1/orders/", "post", json=ORDER)', "POST /v1/orders/"),
    ],
)
def test_a_shop_that_asks_for_ever_is_a_finding(
    tmp_path: Path, caught: str, again: str, endless: str
) -> None:
    """And holds nothing up, whatever it catches and asks in between."""
    looping = TEST.replace("CAUGHT", caught).replace("        AGAIN", f"        {again}")
    code, told, printed = rehearsed(tmp_path, looping, ONLY)
    assert code == 1, printed
    assert any(f"the shop polls endlessly: {endless[:3]}" in each["sentence"] for each in told["findings"]), (
        told["findings"]
    )
    assert all("set-time-limits" in each["lesson"] for each in told["findings"])
    assert "1 failed, 1 passed" in printed


def test_a_test_that_waits_for_ever_is_given_up(tmp_path: Path) -> None:
    """Time passes while it asks, so its calls differ."""
    waiting = TEST.replace("CAUGHT", "Exception").replace("AGAIN", "payment_sandbox.clock.advance('PT1S')")
    begun = monotonic_seconds()
    code, told, printed = rehearsed(tmp_path, waiting, ONLY, "--payment-rehearse-budget=1s")
    (finding,) = told["findings"]
    assert code == 1
    assert finding["sentence"].startswith("the customer's payment failed: the run did not finish"), printed
    assert "in test_it" in finding["timeline"]
    assert "1 failed, 1 passed" in printed, "the others run as ever"
    assert monotonic_seconds() - begun < 60


@pytest.mark.parametrize("loop", ["while True:\n            pass", "__import__('threading').Event().wait()"])
def test_a_loop_without_calls_is_abandoned(tmp_path: Path, loop: str) -> None:
    """Nothing can stop its thread, so the run ends; what was found is reported."""
    looping = TEST.replace("CAUGHT", "Exception").replace("AGAIN", loop)
    (tmp_path / "junit.xml").unlink(missing_ok=True)
    options = (ONLY, "--payment-rehearse-budget=1s", f"--junitxml={tmp_path / 'junit.xml'}")
    code, told, printed = rehearsed(tmp_path, looping, *options)
    (finding,) = told["findings"]
    assert code == 1
    assert 'it was stopped in File "' in finding["sentence"], printed
    assert "in test_it" in finding["timeline"]
    assert "1 failed" in printed
    assert "hanging code without a call cannot be stopped; tests not run: 1" in printed
    assert "did not finish" in (tmp_path / "junit.xml").read_text()


def test_a_job_that_hangs_is_abandoned(tmp_path: Path) -> None:
    """Also in the test as it is, when all that is due has happened."""
    hang_problem = (
        BOOKS.replace("lambda: [look(", "lambda: not app.paid and [look(")
        + """
def test_it(payment_sandbox, shop):
    place(payment_sandbox)
    def wait():
        while True:
            pass
    payment_sandbox.every("PT2H", wait)
"""
    )
    code, told, printed = rehearsed(tmp_path, hang_problem, "--payment-rehearse-budget=1s")
    assert code == 1
    assert "without any change: the run did not finish" in told["findings"][0]["sentence"], printed
    assert "in wait" in told["findings"][0]["timeline"]


@pytest.mark.prove
def test_a_worker_that_hangs_is_replaced(tmp_path: Path) -> None:
    """pytest-xdist runs the other tests."""
    looping = TEST.replace("CAUGHT", "Exception").replace("AGAIN", "while True:\n            pass")
    ran = suite(tmp_path, looping, "-n1", ONLY, "--payment-rehearse-budget=1s")
    assert ran.returncode == 1
    assert "the run did not finish" in ran.stdout
    assert "1 passed" in ran.stdout


def test_a_call_is_endless_by_the_test_as_it_is() -> None:
    """A test that makes many calls may make twice as many in a variation."""
    calls = RepeatedCalls()
    assert not any(calls.is_over("GET /a", NOON) for _ in range(2 * SAME_CALLS_MAX))
    assert SAME_CALLS_BASELINE_MAX > 2 * SAME_CALLS_MAX
    varied = RepeatedCalls()
    varied.set_limit(calls.most_calls)
    assert not any(varied.is_over("GET /a", NOON) for _ in range(4 * SAME_CALLS_MAX))
    assert varied.is_over("GET /a", NOON)
    assert not varied.is_endless
