"""Suites with unittest."""

import re
from pathlib import Path
from unittest import TestCase

import pytest

from payment_sandbox.testing.unittesting import PaymentSandboxMixin
from tests.support.suites import run_pytest, run_suite

SUITE = """
import sys
import unittest
from datetime import timedelta

import requests
from flask import Flask, request
from payment_sandbox import PaymentSandboxMixin

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    payment_settings = {"name": "mine"}
    payment_scenario = "webhook-twice"
    payment_intercept = ["https://api.provider.example"]

    def setUp(self):
        self.known = []
        app = Flask("shop")

        @app.post("/webhook")
        def webhook():
            self.known.append(request.json["order_id"])
            return ""

        self.payment_sandbox.deliver_to(app)

    def place(self):
        auth = (self.payment_sandbox.api_key, "")
        return requests.post("https://api.provider.example/v1/orders/", json=ORDER, auth=auth).json()["id"]

    def test_a_paid_order(self):
        order_id = self.place()
        self.payment_sandbox.act(order_id)
        self.assertEqual(self.known, [order_id] * 4)
        self.assertEqual(self.payment_sandbox.client.project()["settings"]["name"], "mine")
        before = self.payment_sandbox.clock.now
        self.payment_sandbox.clock.advance(timedelta(minutes=5))
        self.assertEqual(self.payment_sandbox.clock.now - before, timedelta(minutes=5))

    def test_each_test_has_its_own(self):
        self.assertEqual(self.payment_sandbox.client.journal(), [])



class TestEarlyThatDoesNotAsk(PaymentSandboxMixin, unittest.TestCase):
    payment_intercept = "https://api.provider.example"

    def test_its_requests_stay_here(self):
        answer = requests.get("https://api.provider.example/v1/orders/x/")
        self.assertEqual(answer.json()["error"]["type"], "Unauthorized")


class TestLater(PaymentSandboxMixin, unittest.TestCase):
    def test_the_address_stays_closed(self):
        with self.assertRaisesRegex(RuntimeError, "provider.example.* replaced in test_shop.TestEarly"):
            requests.get("https://api.provider.example/v1/orders/x/")
        self.assertIsNone(self._payment_sandbox)
        self.assertNotIn("pytest", sys.modules)
"""


def test_unittest_alone(tmp_path: Path) -> None:
    """A suite runs with unittest alone, with a project for each test; an intercepted address stays closed."""
    result = run_suite(tmp_path, SUITE, "-W", "error", "-m", "unittest", "-v", PAYMENT_SANDBOX_REVIEW="off")
    assert result.returncode == 0, result.stderr
    assert "Ran 4 tests" in result.stderr


FAILS = """
import unittest
from payment_sandbox import PaymentSandboxMixin

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    def test_with_the_sandbox(self):
        self.payment_sandbox.client.call("POST", "/v1/orders/", ORDER)
        self.assertEqual(len("four"), 3)

    def test_without_the_sandbox(self):
        self.check(5)

    def check(self, number):
        self.assertEqual(number, 6)

class TestAsync(PaymentSandboxMixin, unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        self.payment_sandbox.client.call("POST", "/v1/orders/", ORDER)
        self.assertEqual(7, 8)

class TestSetUp(PaymentSandboxMixin, unittest.TestCase):
    def setUp(self):
        self.payment_sandbox.client.call("POST", "/v1/orders/", ORDER)
        self.assertEqual(9, 10)

    def test_nothing(self):
        pass

class TestParts(PaymentSandboxMixin, unittest.TestCase):
    def test_parts(self):
        with self.subTest(part=1):
            self.payment_sandbox.client.call("POST", "/v1/orders/", ORDER)
            self.assertEqual(11, 12)
"""


def run(tmp_path: Path, code: str, runner: str, *options: str, **variables: str) -> tuple[int, str]:
    """Run a suite with a runner; return the exit code and the output."""
    (tmp_path / "test_shop.py").write_text(code)
    result = (
        run_pytest(tmp_path, "-pno:cacheprovider", *options, **variables)
        if runner == "pytest"
        else run_suite(tmp_path, code, "-m", runner, **variables)
    )
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_a_failure_shows_the_line_of_the_test_and_the_timeline(tmp_path: Path, runner: str) -> None:
    """The traceback ends at the failing line, wherever it is; tests that used the sandbox have its timeline."""
    code, output = run(tmp_path, FAILS, runner, "-rN")  # under CI, a summary repeats the whole messages
    assert code == 1, output
    for line in ('len("four"), 3', "self.check(5)", "number, 6", "7, 8", "9, 10", "11, 12"):
        assert line in output, (line, output)
    assert "unittesting.py" not in output
    assert output.count("payment sandbox:") == 4, output
    assert output.count("POST /v1/orders/ -> 201") >= 4, output


CARELESS = """
import unittest
from payment_sandbox import PaymentSandboxMixin

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


class TestUnset(PaymentSandboxMixin, unittest.TestCase):
    def test_careless(self):
        orders = f"{self.payment_sandbox.base_url}/v1/orders/"
        order = self.payment_sandbox.session.post(orders, json={**ORDER, "custommer": {}}).json()
        self.payment_sandbox.act(order["id"])


class TestOff(TestUnset):
    payment_review = "off"


class TestError(TestUnset):
    payment_review = "error"


class TestAsync(PaymentSandboxMixin, unittest.IsolatedAsyncioTestCase):
    async def test_passes(self):
        await self.payment_sandbox.aio.clock.advance("PT1H")
"""


@pytest.mark.parametrize(
    ("runner", "option", "variable", "failed"),
    [
        ("unittest", "", "", {"TestError"}),
        ("unittest", "", "error", {"TestError", "TestUnset"}),
        ("pytest", "--payment-review=error", "", {"TestError", "TestUnset"}),
    ],
)
def test_the_mode_of_the_review(
    tmp_path: Path, runner: str, option: str, variable: str, failed: set[str]
) -> None:
    """A class overrides the variable and the option; by default, mistakes are warnings."""
    variables = {"PAYMENT_SANDBOX_REVIEW": variable} if variable else {}
    code, output = run(tmp_path, CARELESS, runner, option, **variables)
    assert code == 1, output
    assert {*re.findall(r"^FAIL(?:ED|:).*?(Test[A-Z]\w+)", output, re.MULTILINE)} == failed, output
    assert output.count("did you mean 'customer'?") >= 2, output
    warned = re.findall(r"PaymentReviewWarning: test_shop.(\w+).test_careless: the review found", output)
    assert {*warned} == {"TestError", "TestUnset"} - failed, output


def test_the_mixin_must_precede_test_case() -> None:
    """The mixin must precede TestCase."""
    with pytest.raises(TypeError, match="list PaymentSandboxMixin before TestCase"):
        type("TestShop", (TestCase, PaymentSandboxMixin), {})
