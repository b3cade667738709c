"""Markers configure projects, and wrong markers are reported."""

import re
from pathlib import Path

import pytest

from payment_sandbox.serving.server import Server
from tests.support.suites import passed, suite

CONFIGURED = """
from pathlib import Path
from payment_sandbox.scenarios.effects import Duplicate
from unittest import TestCase
from payment_sandbox.testing.unittesting import PaymentSandboxMixin

def went_back(sandbox):
    before = sandbox.client.active_scenario()
    sandbox.scenario("webhook-late")
    sandbox.client.reset()
    assert sandbox.client.active_scenario() == before
    return before["name"]

@pytest.mark.payment_scenario("webhook-lost")
def test_a_name(payment_sandbox):
    assert went_back(payment_sandbox) == "webhook-lost"

@pytest.mark.payment_scenario("mine.yaml")
def test_a_file(payment_sandbox):
    assert went_back(payment_sandbox) == "mine"

@pytest.mark.payment_scenario(Path(__file__).parent / "mine.yaml")
def test_a_path(payment_sandbox):
    assert went_back(payment_sandbox) == "mine"

@pytest.mark.payment_settings(mode="live", name="the class's")
class TestMarked:
    @pytest.mark.payment_settings(name="the test's")
    def test_markers_add_up(self, payment_sandbox):
        settings = payment_sandbox.client.project()["settings"]
        assert (settings["mode"], settings["name"]) == ("live", "the test's")

@pytest.mark.payment_scenario({"name": "own", "webhooks": [Duplicate(2)]})
def test_a_document(payment_sandbox):
    assert went_back(payment_sandbox) == "own"

class TestMixin(PaymentSandboxMixin, TestCase):
    payment_scenario = "webhook-lost"

    def test_a_class(self):
        assert went_back(self.payment_sandbox) == "webhook-lost"
"""


@pytest.mark.parametrize("is_remote", [False, True])
def test_markers_configure_the_project(tmp_path: Path, server: Server, is_remote: bool) -> None:
    """Markers of a test add to those of its class; a reset goes back to the scenario of the marker or class."""
    (tmp_path / "mine.yaml").write_text("name: mine\nrules: []")
    if is_remote:
        passed(suite(tmp_path, CONFIGURED, "-k", "not Mixin", SANDBOX_URL=server.url), 5)
    else:
        passed(suite(tmp_path, CONFIGURED), 6)


INVALID_MARKERS = {
    "payment_settings({'mode': 'live'})": "payment_settings takes settings by name",
    "payment_scenario()": "payment_scenario takes one scenario",
    "payment_scenario('webhook-lots')": "did you mean 'webhook-lost'",
    "payment_settings(mood='live')": "mood is not a known key",
    "payment_review(mood='error')": "UsageError: payment_review",
    "payment_review('loud')": "UsageError: payment_review",
    "payment_review()": "UsageError: payment_review",
    "payment_review('error', expect=['CAP-99'])": "UsageError: payment_review",
    "payment_intercept(urls=['x'])": "UsageError: payment_intercept",
    "payment_intercept(['x'])": "UsageError: payment_intercept",
}


def test_wrong_markers_are_reported(tmp_path: Path) -> None:
    """A wrong marker is reported at its test, with its name and the expected arguments."""
    tests = "".join(
        f"@pytest.mark.{marker}\ndef test_{number}(payment_sandbox):\n    pass\n\n"
        for number, marker in enumerate(INVALID_MARKERS)
    )
    result = suite(tmp_path, tests)
    _, *parts = re.split(r"^_+ (?:ERROR at setup of )?test_(\d+) _+$", result.stdout, flags=re.MULTILINE)
    reports = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    for number, (marker, words) in enumerate(INVALID_MARKERS.items()):
        assert words in reports[number].partition("short test summary")[0], marker
