"""The report of a failing test: its traceback ends at the line of the test, and its project's timeline follows."""

import re
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from requests import ConnectionError  # noqa: A004
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.documentation.frameworks import FRAMEWORKS
from tests.support.in_process import ORDER, place, shop_that
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
        "POST /v1/orders/",
        " is new",
        " is processing",
        " is completed",
        ", attempt 1: 200",
        "/refunds/",
    ]
    places = [report.index(line) for line in lines]
    assert places == sorted(places), "causes precede their effects"
    for line in (
        "scenario mine",
        "POST /v1/orders/ -> 201",
        "no rule matched; nearest is rule 1: amount expected 5, was 1295",
        " is new",
        " is completed",
        ", attempt 1: 200",
        ": 200",
        "/refunds/ -> 409, rule SET-49",
        "RefundExceedsCaptured: 9999 cents is too much: 1295 cents are left to refund",
    ):
        assert line in report, line


def test_the_timeline_omits_the_default_scenario(payment_sandbox: PaymentSandbox) -> None:
    """The timeline does not mention rules of the default scenario that do not apply."""
    place(payment_sandbox)
    assert "rule" not in payment_sandbox.timeline()
    answer = payment_sandbox.session.post(
        f"{payment_sandbox.base_url}/v1/orders/",
        json={**ORDER, "customer": {"email_address": "declined@example.com"}},
    )
    assert answer.status_code == 201


def test_webhooks_are_shown_with_their_address(payment_sandbox: PaymentSandbox) -> None:
    """The timeline shows addresses of webhooks, text of HTML answers and targets of redirects."""
    page = "<!doctype html><html><head><title>x</title></head><body><h1>Forbidden</h1><p>CSRF &amp; more</p>"
    answers = [(page, 403), ("", 302)]

    def handle(order_id: str) -> Any:
        body, status = answers.pop(0)
        return body, status, {"Location": "https://shop.example/hook/"}

    payment_sandbox.deliver_to(shop_that(handle), "http://testserver/hook")
    payment_sandbox.client.change_settings(webhook_url="http://testserver/webhook")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    payment_sandbox.clock.advance("PT2M")
    timeline = payment_sandbox.timeline()
    assert "403 · Forbidden CSRF & more" in timeline
    assert "from http://testserver/webhook" in timeline
    assert "redirects are not followed: this one leads to https://shop.example/hook/" in timeline


def flask_shop() -> Flask:
    """Return a shop whose handler never runs."""
    app = Flask("shop")
    app.add_url_rule("/hook/", view_func=never_runs, methods=["POST"])
    return app


def never_runs(request: Request | None = None) -> Any:
    """Fail, because no webhook arrives here."""
    raise AssertionError(request)


@pytest.mark.parametrize(
    ("app", "name", "status"),
    [
        (flask_shop(), "Flask 3.1", "308"),
        (Starlette(routes=[Route("/hook/", never_runs, methods=["POST"])]), "Starlette 1.10", "307"),
    ],
    ids=["Flask", "Starlette"],
)
def test_a_framework_redirects_to_its_route(
    payment_sandbox: PaymentSandbox, app: Any, name: str, status: str
) -> None:
    """The webhook counts as delivered, although the handler never ran; the review names the missing slash."""
    payment_sandbox.deliver_to(app, webhook_url="http://testserver/hook")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (webhook,) = payment_sandbox.webhooks
    response = webhook["attempts"][0]["response"]
    assert response is not None
    assert (webhook["state"], response["status"]) == ("delivered", int(status))
    (finding,) = (each for each in payment_sandbox.review() if each.rule == "HOOK-09")
    assert finding.advice.endswith("write webhook_url with the final slash.")
    assert [each.missing_slash for each in FRAMEWORKS if name in each.name] == [status]


def test_a_redirect_to_another_host_is_no_matter_of_slashes(payment_sandbox: PaymentSandbox) -> None:
    """A permanent redirect of a whole server names its target."""
    moved = {"Location": "https://shop.example/hook"}
    payment_sandbox.deliver_to(shop_that(lambda order_id: ("", 301, moved)), "http://testserver/webhook")
    payment_sandbox.act(place(payment_sandbox), action="visit")
    (finding,) = (each for each in payment_sandbox.review() if each.rule == "HOOK-09")
    assert "write https://shop.example/hook as webhook_url" in finding.advice


def test_a_missing_webhook_url_is_reported(payment_sandbox: PaymentSandbox) -> None:
    """The timeline reports a missing webhook_url with its remedy."""
    payment_sandbox.act(place(payment_sandbox))
    assert payment_sandbox.timeline().endswith(
        "2 status changes sent no webhook: neither the project nor the order has a webhook_url\n"
        "    In a test, call payment_sandbox.deliver_to(app). Otherwise make the shop listen at an address, "
        "and set webhook_url to it, in the order or in the project's settings."
    )


def test_missing_calls_are_reported_with_a_hint(payment_sandbox: PaymentSandbox) -> None:
    """Without any call, the timeline suggests checking the address and the key."""
    hint = "no call with this project's key has arrived\n    Give the shop's client the address of"
    assert hint in payment_sandbox.timeline()
    place(payment_sandbox)
    assert "no call with" not in payment_sandbox.timeline()


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


def test_a_read_shows_the_status_that_it_gave(payment_sandbox: PaymentSandbox) -> None:
    """The timeline shows the status that a read returned."""
    order_id = place(payment_sandbox)
    payment_sandbox.act(order_id)
    for path in (f"/v1/orders/{order_id}/", "/v1/orders/nope/"):
        payment_sandbox.session.get(f"{payment_sandbox.base_url}{path}")
    timeline = payment_sandbox.timeline()
    assert f"GET /v1/orders/{order_id}/ -> 200: completed\n" in timeline
    assert "GET /v1/orders/nope/ -> 404, rule" in timeline


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda sandbox: sandbox.act({"id": "x"}),
            "takes the id of an order or of another record, not a dict: order['id']",
        ),
        (lambda sandbox: sandbox.clock.advance(1800), "advance takes a timedelta or a period such as PT30M"),
    ],
)
def test_other_types_are_refused(payment_sandbox: PaymentSandbox, call: Any, message: str) -> None:
    """Arguments of wrong types are refused with the expected ones."""
    with pytest.raises(TypeError, match=re.escape(message)):
        call(payment_sandbox)


ODD = """
import unittest


@pytest.fixture
def broken(payment_sandbox):
    place(payment_sandbox)
    raise ValueError("the fixture fails")


def test_whose_fixture_fails(broken):
    pass


def test_with_a_late_fixture(request):
    place(request.getfixturevalue("payment_sandbox"))
    assert False
"""


@pytest.mark.parametrize("options", [(), ("--show-capture=no",), ("-n", "2"), ("--tb=short",)])
def test_every_failure_has_its_timeline(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A failing fixture, a late fixture, missing captured output and workers do not suppress the timeline."""
    result = suite(tmp_path, ODD, *options)
    assert result.returncode == 1
    assert result.stdout.count("POST /v1/orders/ -> 201") == 2, result.stdout


MISUSED = """
def test_arguments(payment_sandbox):
    payment_sandbox.deliver_to(7)


def test_documents(payment_sandbox):
    payment_sandbox.client.faults({})


def test_an_unknown_order(payment_sandbox):
    payment_sandbox.act("unknown")


def test_after_a_call(payment_sandbox):
    place(payment_sandbox)
    payment_sandbox.deliver_to(7)
"""


def test_a_wrong_call_by_the_test_has_no_hint_about_missing_calls(tmp_path: Path) -> None:
    """A wrong call by the test has no hint about missing calls, except for an unknown order."""
    result = suite(tmp_path, MISUSED)
    assert "4 failed" in result.stdout
    assert result.stdout.count("--- payment sandbox ---") == 2, result.stdout
    assert result.stdout.count("no call with this project's key") == 1


def test_a_fault_is_described_in_words(payment_sandbox: PaymentSandbox) -> None:
    """The timeline describes faults in words, as the dashboard does."""
    payment_sandbox.client.faults([{"when": {"nth": 1}, "then": {"reset": True, "phase": "after"}}])
    with pytest.raises(ConnectionError):
        payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=ORDER)
    assert "-> 201, fault: response lost, connection cut\n" in payment_sandbox.timeline()
    (response,) = [entry for entry in payment_sandbox.client.timeline() if entry["kind"] == "response"]
    assert response["detail"] == "fault: response lost, connection cut"


CALLS = (
    "payment_sandbox.act('no-such-order')",
    "payment_sandbox.clock.advance('no duration')",
    "payment_sandbox.scenario('no-such-scenario')",
    "payment_sandbox.client.change_settings(mode='prod')",
    "payment_sandbox.wait_for('no-such-order', 'completed')",
    "asyncio.run(payment_sandbox.aio.act('no-such-order'))",
)
TESTS = "".join(f"\n\ndef test_{number}(payment_sandbox):\n    {call}\n" for number, call in enumerate(CALLS))


def test_a_refusal_ends_at_the_line_of_the_test(tmp_path: Path) -> None:
    """A traceback ends at the call in the test; ``--full-trace`` shows all of it."""
    for options, is_full in (("--tb=short", "--show-capture=no"), False), (("--full-trace",), True):
        output = suite(tmp_path, "import asyncio\n" + TESTS, *options).stdout
        failures = output.partition("short test summary")[0].split("___ test_")[1:]
        assert len(failures) == len(CALLS), output
        for failure in failures:
            traceback = failure.partition("- payment sandbox -")[0]
            assert "SandboxError" in traceback
            assert ("payment_sandbox/" in traceback) == is_full, traceback
