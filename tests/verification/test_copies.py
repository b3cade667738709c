"""A sandbox with the settings file that verify writes behaves like the service."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox_verify.player import Player
from payment_sandbox_verify.reporting import compare, format_settings_file
from payment_sandbox_verify.service import Service
from payment_sandbox_verify.verifying import Verdict, reference_sandbox, verify
from tests.support.driver import NOBODY, Sandbox, card
from tests.support.servers import make_server
from tests.verification.scenes import SETTINGS_SCENES, scenes_called

SETTINGS: dict[str, Any] = {
    "absolute_urls": True,
    "authorized_status": "accepted",
    "errors": {
        "BadRequest": {"status": 422},
        "CaptureExceedsRemainder": {
            "status": 400,
            "type": "AmountTooHigh",
            "value": "The amount is too high",
        },
        "NotFound": {"status": 403, "type": "Forbidden", "value": "This is not yours"},
        "ORD-03": {"value": "Only euros, please"},
        "RequestEntityTooLarge": {"status": 400},
        "UnsupportedMediaType": {"status": 400},
        "ValidationError": {"status": 422, "type": "InvalidRequest"},
    },
    "reduced_customer": True,
    "refund_status": "processing",
    "unknown_fields": "reject",
    "unknown_locale": "ignore",
}


def test_a_sandbox_with_the_settings_file_differs_in_the_same_rules(tmp_path: Path) -> None:
    """What differs in a sandbox with other settings is found by trial, and one with the written file is alike."""
    scenes = scenes_called(*SETTINGS_SCENES)
    with reference_sandbox(SETTINGS) as reference:
        comparison = compare(reference, live=False, scenes=scenes)
    assert comparison.settings == SETTINGS
    assert comparison.not_copied == []
    file = tmp_path / "differences.yaml"
    file.write_text(format_settings_file(comparison, file.name), encoding="utf-8")
    assert "No setting can reproduce" not in file.read_text(encoding="utf-8")
    with make_server(project_files=[file]) as server, requests.Session() as session:
        session.trust_env = False
        clock = SandboxClient(server.url, "sandbox-key").clock
        pause = lambda seconds: clock.advance(timedelta(seconds=seconds))  # noqa: E731
        service = Service(server.url, "sandbox-key", session, pause=pause)
        copied = verify(Player(service), {}, live=False, scenes=scenes)
    rules = {each.rule for each in comparison.differing}
    assert rules >= {"ORD-24", "TX-12", "SET-08", "SET-09", "SET-48"}
    assert {rule for rule, each in copied.reports.items() if each.verdict is Verdict.DIFFERS} == rules


def request_error(sandbox: Sandbox, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    """Return the status and the error of a call, without a check against the API description."""
    response = sandbox.http.request(method, f"{sandbox.url}{path}", json=body, auth=(sandbox.key, ""))
    error: dict[str, Any] = response.json()["error"]
    assert error["status"] == response.status_code
    return response.status_code, error


def test_configured_errors_replace_status_type_and_message(project: Callable[..., Sandbox]) -> None:
    """Errors set by rule override those set by type; fields without a setting and violations stay."""
    sandbox = project(
        errors={
            "ValidationError": {"status": 422, "type": "Invalid"},
            "ORD-03": {"value": "Only euros, please"},
            "CAP-02": {"status": 400, "value": "Too early"},
            "NotFound": {"status": 403, "type": "Forbidden"},
        }
    )
    status, error = request_error(sandbox, "POST", "/v1/orders/", {"amount": 5, "currency": "USD"})
    assert (status, error["type"], error["value"]) == (422, "Invalid", "Only euros, please")
    assert [each["path"] for each in error["violations"]] == ["currency"]
    status, error = request_error(sandbox, "POST", "/v1/orders/", {"amount": -1, "currency": "EUR"})
    assert (status, error["type"], "amount" in error["value"]) == (422, "Invalid", True)
    order = sandbox.place(card(capture_mode="manual"))
    captures_path = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}/captures/"
    status, error = request_error(sandbox, "POST", captures_path, {})
    assert (status, error["type"], error["value"]) == (400, "AuthorizationMissing", "Too early")
    status, error = request_error(sandbox, "GET", f"/v1/orders/{NOBODY}/")
    assert (status, error["type"]) == (403, "Forbidden")
    status, error = request_error(sandbox, "GET", "/v1/nothing/")
    assert (status, error["type"]) == (403, "Forbidden")
    journal = sandbox.get("/control/journal/").json()["items"]
    assert [entry["status"] for entry in journal if entry["status"] >= 400] == [422, 422, 400, 403, 403]


@pytest.mark.parametrize(
    ("errors", "path"),
    [
        ({"ORD-99": {"value": "x"}}, "errors.ORD-99"),
        ({"Wrong": {"value": "x"}}, "errors.Wrong"),
        ({"ORD-03": {"status": 200}}, "errors.ORD-03.status"),
        ({"ORD-03": {"text": "x"}}, "errors.ORD-03.text"),
        ({"ORD-03": 5}, "errors.ORD-03"),
        ({"ORD-03": {"value": 5}}, "errors.ORD-03.value"),
    ],
)
def test_an_invalid_errors_setting_is_refused(
    project: Callable[..., Sandbox], errors: dict[str, object], path: str
) -> None:
    """An invalid errors setting is refused, and the error names its path."""
    sandbox = project()
    response = sandbox.patch("/control/project/", {"errors": errors})
    assert response.status_code == 400
    assert [each["path"] for each in response.json()["error"]["violations"]] == [path]


def test_refunds_can_take_time_by_a_setting(project: Callable[..., Sandbox]) -> None:
    """With refund_status processing, refunds complete a minute later."""
    sandbox = project(refund_status="processing")
    order = sandbox.place(card())
    sandbox.pay(order)
    refund = sandbox.post(f"/v1/orders/{order['id']}/refunds/", {}).json()
    assert refund["status"] == "processing"
    sandbox.advance("PT1M")
    assert sandbox.read(refund)["status"] == "completed"
