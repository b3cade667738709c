"""Suites with unittest."""

from pathlib import Path
from unittest import TestCase

import pytest

from payment_sandbox.testing.unittesting import PaymentSandboxMixin
from tests.support.suites import run_suite

SUITE = """
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

    def test_subtests(self):
        for amount in (1, 2):
            with self.subTest(amount=amount):
                self.place()

    @unittest.skip("not here")
    def test_skipped(self):
        pass



class TestThatDoesNotAsk(PaymentSandboxMixin, unittest.TestCase):
    payment_intercept = "https://api.provider.example"

    def test_its_requests_stay_here(self):
        answer = requests.get("https://api.provider.example/v1/orders/x/")
        self.assertEqual(answer.json()["error"]["type"], "Unauthorized")


class TestWithoutPayments(PaymentSandboxMixin, unittest.TestCase):
    def test_nothing(self):
        self.assertIsNone(self._payment_sandbox)


if __name__ == "__main__":
    unittest.main()
"""


def test_unittest_alone(tmp_path: Path) -> None:
    """A suite runs with unittest alone, with a project for each test."""
    result = run_suite(tmp_path, SUITE, "-W", "error", "-m", "unittest", "-v", PAYMENT_SANDBOX_REVIEW="off")
    assert result.returncode == 0, result.stderr
    assert "OK (skipped=1)" in result.stderr
    loads = (
        "import sys, payment_sandbox; payment_sandbox.PaymentSandboxMixin; assert 'pytest' not in sys.modules"
    )
    assert run_suite(tmp_path, SUITE, "-c", loads).returncode == 0


PASSES = """
import unittest
from payment_sandbox import PaymentSandboxMixin

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}


class TestShop(PaymentSandboxMixin, unittest.TestCase):
    def test_passes(self):
        self.payment_sandbox.client.call("POST", "/v1/orders/", ORDER)

    def test_careless(self):
        orders = f"{self.payment_sandbox.base_url}/v1/orders/"
        order = self.payment_sandbox.session.post(orders, json={**ORDER, "custommer": 1}).json()
        self.payment_sandbox.act(order["id"])


class TestAsync(PaymentSandboxMixin, unittest.IsolatedAsyncioTestCase):
    async def test_passes(self):
        order = await self.payment_sandbox.aio.run(self.payment_sandbox.client.call, "POST", "/v1/orders/", ORDER)
        await self.payment_sandbox.aio.act(order["id"])
"""


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


@pytest.mark.parametrize("runner", ["unittest", "pytest"])
def test_a_failure_shows_the_line_of_the_test_and_the_timeline(tmp_path: Path, runner: str) -> None:
    """The traceback ends at the failing line, wherever it is; tests that used the sandbox have its timeline."""
    without_summary = ["-rN"] if runner == "pytest" else []  # under CI it repeats the whole messages
    result = run_suite(tmp_path, FAILS, "-m", runner, *without_summary)
    output = result.stdout + result.stderr
    assert result.returncode == 1, output
    for line in ('len("four"), 3', "self.check(5)", "number, 6", "7, 8", "9, 10", "11, 12"):
        assert line in output, (line, output)
    assert "unittesting.py" not in output
    assert output.count("payment sandbox:") == 4, output
    assert output.count("POST /v1/orders/ -> 201") >= 4, output


MODES = [
    # the attribute of the class, the flag of the plugin, the variable, and whether a mistake is a failure
    pytest.param(None, (), {}, False, id="the review warns by default"),
    pytest.param(None, (), {"PAYMENT_SANDBOX_REVIEW": "error"}, True, id="the variable makes it an error"),
    pytest.param("off", (), {"PAYMENT_SANDBOX_REVIEW": "error"}, False, id="a class overrides the variable"),
    pytest.param(
        "off", ("pytest", "-p", "no:pytest_asyncio.plugin"), {}, False, id="a class turns it off with pytest"
    ),
    pytest.param("error", (), {}, True, id="a class turns it on"),
    pytest.param("error", ("pytest",), {}, True, id="a class turns it on with pytest"),
    pytest.param(None, ("pytest", "--payment-review=error"), {}, True, id="the plugin turns it on"),
]


@pytest.mark.parametrize(("attribute", "runner", "variables", "fails"), MODES)
def test_the_mode_of_the_review(
    tmp_path: Path, attribute: str | None, runner: tuple[str, ...], variables: dict[str, str], fails: bool
) -> None:
    """Mistakes are warnings, failures, or ignored; synchronous and asynchronous tests pass without a warning."""
    line = f"TestCase):\n    payment_review = {attribute!r}\n"
    code = PASSES if attribute is None else PASSES.replace("TestCase):\n", line)
    strict = ("-W", "error") if attribute == "off" else ()
    result = run_suite(tmp_path, code, *strict, "-m", *(runner or ("unittest",)), **variables)
    output = result.stdout + result.stderr
    assert result.returncode == fails, output
    assert ("did you mean 'customer'?" in output) == (attribute != "off"), output
    warning = "PaymentReviewWarning: test_shop.TestShop.test_careless: the review found"
    assert (warning in output) == (not fails and attribute != "off"), output


def test_the_mixin_must_precede_test_case() -> None:
    """The mixin must precede TestCase."""
    with pytest.raises(TypeError, match="list PaymentSandboxMixin before TestCase"):
        type("TestShop", (TestCase, PaymentSandboxMixin), {})


GUARDED = """
import unittest
import requests
from payment_sandbox import PaymentSandboxMixin

URL = "http://127.0.0.1:11/v1/orders/x/"

class TestFirst(PaymentSandboxMixin, unittest.TestCase):
    payment_intercept = "http://127.0.0.1:11"

    def test_answered(self):
        self.assertEqual(requests.get(URL).status_code, 401)

class TestLater(unittest.TestCase):
    def test_refused(self):
        with self.assertRaisesRegex(RuntimeError, "localhost:11.* replaced in test_shop.TestFirst.test_answered"):
            requests.get(URL)
"""


def test_an_intercepted_address_stays_closed(tmp_path: Path) -> None:
    """Without pytest, an address stays closed after its test, and the error names the test."""
    result = run_suite(tmp_path, GUARDED, "-m", "unittest", "test_shop")
    assert result.returncode == 0, result.stderr
