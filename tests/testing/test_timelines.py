"""A test that fails ends with its project's timeline."""

from pathlib import Path

import pytest

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
    """Requests and answers, refusals with their rule, the nearest scenario rule, statuses, webhooks."""
    ran = suite(tmp_path, FAILING)
    assert ran.returncode == 1
    _, _, report = ran.stdout.partition("payment sandbox")
    told = ["POST /v1/orders/", " is new", " is processing", " is completed", ", try 1: 200", "/refunds/"]
    places = [report.index(words) for words in told]
    assert places == sorted(places), "causes come before what they caused"
    for words in (
        "scenario mine",
        "POST /v1/orders/ -> 201",
        "no rule matched; nearest is rule 0: amount expected 5, was 1295",
        " is new",
        " is completed",
        ", try 1: 200",
        ": 200",
        "/refunds/ -> 409, rule SET-49",
        "RefundExceedsCaptured: 9999 cents requested, 1295 left to refund",
    ):
        assert words in report, words


ODD = """
import unittest


@pytest.fixture
def broken(payment_sandbox):
    place(payment_sandbox)
    raise ValueError("the fixture fails")


def test_whose_fixture_fails(broken):
    pass


def test_that_asks_late(request):
    place(request.getfixturevalue("payment_sandbox"))
    assert False
"""


@pytest.mark.parametrize("options", [(), ("--show-capture=no",), ("-n", "2"), ("--tb=short",)])
def test_every_failure_has_its_timeline(tmp_path: Path, options: tuple[str, ...]) -> None:
    """In a fixture, asked for late, without captured output, on another worker."""
    ran = suite(tmp_path, ODD, *options)
    assert ran.returncode == 1
    assert ran.stdout.count("POST /v1/orders/ -> 201") == 2, ran.stdout
