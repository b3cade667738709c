"""A replay repeats the steps of evidence from the dashboard, and reports differences."""

import json
from base64 import b64decode
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox_verify.evidence_replay import ReplayOutcome, replay
from payment_sandbox_verify.recording import RecordingRefused
from tests.support.commands import run
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card, details
from tests.support.payer import Payer, payment_page
from tests.support.servers import make_server
from tests.support.shop import Received, Shop


def evidence(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, Any]:
    """Return the evidence about an order from the dashboard."""
    browser = Dashboard(sandbox)
    saved = browser.http.get(f"{browser.base}orders/{order['id']}/evidence.json", timeout=60)
    data: dict[str, Any] = saved.json()
    return data


def replay_here(sandbox: Sandbox, data: dict[str, Any]) -> ReplayOutcome:
    """Replay evidence on the same server."""
    return replay(SandboxClient(sandbox.url, sandbox.key), data)


def make_history(watched: Sandbox, shop: Shop) -> dict[str, Any]:
    """Make captures, refunds, a failed attempt, a refusal and an expiry; return the captured order."""

    def read(received: Received) -> int:
        watched.read(received.body["order_id"])
        return 204

    shop.answer = read
    watched.settings(name="Kousen")
    watched.scenario({"when": {"amount": 777}, "then": {"customer": "pays", "after": "PT1M"}})
    order = watched.authorized(expiration_period="P7D")
    watched.advance("P1D")
    watched.take(order, "captures/amount", {"amount": 500})
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 200})
    watched.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 9999})
    payer = Payer(watched)
    payer.press(payer.open(payment_page(watched.place(by("wallet-web")))), "fail")
    watched.place(card(), amount=777)
    watched.place(card())
    watched.advance("PT1H")
    watched.create(amount=0)
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{order['id']}/"), "merchant void", amount="1.00")
    return order


def test_a_replay_has_no_differences(watched: Sandbox, shop: Shop) -> None:
    """A replay gets the same responses and final orders, and sends no webhooks to the shop."""
    order = make_history(watched, shop)
    data = evidence(watched, order)
    received = len(shop.received)
    projects = len(watched.server.registry.all())
    outcome = replay_here(watched, data)
    assert (outcome.differences, outcome.skipped) == ([], [])
    assert outcome.steps > 15
    assert len(watched.server.registry.all()) == projects, "the replay must delete its project"
    assert len(shop.received) == received


def test_a_replay_that_cannot_begin_leaves_nothing(watched: Sandbox, shop: Shop) -> None:
    """A replay whose first scenario is refused deletes its project; a later one that is refused differs."""
    data = evidence(watched, make_history(watched, shop))
    data["snapshot"]["scenario"]["name"] = "not a name"
    assert "change of scenario: is no longer possible" in replay_here(watched, data).differences[0]
    data["choices"].clear()
    projects = len(watched.server.registry.all())
    with pytest.raises(SandboxError):
        replay_here(watched, data)
    assert len(watched.server.registry.all()) == projects


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        (lambda data: data["journal"][0]["response"].update(amount=5), "amount is 1000 instead of 5"),
        (lambda data: data["journal"][1].update(status=404), "answered 200 instead of 404"),
        (lambda data: data["snapshot"]["orders"][0].update(status="expired"), "instead of expired"),
        (lambda data: data["actions"].append(data["actions"][0]), "is no longer possible"),
    ],
)
def test_differences_are_reported(sandbox: Sandbox, change: Any, difference: str) -> None:
    """A replay reports differing responses, statuses, actions and final orders, and keeps its project."""
    order = sandbox.pay(sandbox.place(card()))
    sandbox.read(order)
    data = evidence(sandbox, order)
    change(data)
    outcome = replay_here(sandbox, data)
    assert any(difference in each for each in outcome.differences), outcome.differences
    project = sandbox.server.registry.find_by_id(outcome.project_id)
    assert project is not None, "the project must stay for inspection"
    assert project.settings.expires_after == "P7D", "the project must expire"


def set_fault(sandbox: Sandbox, **then: Any) -> None:
    """Set a fault for the next POST; a rate limit applies to the second."""
    call_count = {} if "rate_limit" in then else {"nth": 1}
    fault = {"when": {"method": "POST", **call_count}, "then": then}
    assert sandbox.put("/control/faults/", {"faults": [fault]}).status_code == 200


@pytest.mark.parametrize(
    ("fault", "second"),
    [
        ({"status": 503}, 200),
        ({"rate_limit": "1/PT1S"}, 429),
        ({"reset": True}, 200),
        ({"status": 503, "phase": "after"}, 409),
        ({"reset": True, "phase": "after"}, 409),
        ({"truncate": True}, 409),
        ({"latency": 0.01}, 409),
    ],
)
def test_processed_requests_are_repeated(sandbox: Sandbox, fault: dict[str, Any], second: int) -> None:
    """A replay skips requests that a fault prevented, and repeats processed requests with a lost response."""
    order = sandbox.authorized()
    set_fault(sandbox, **fault)
    for _ in range(2):
        with suppress(requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
            status = sandbox.take(order, "captures/amount", {"amount": 1500}).status_code
    assert status == second
    sandbox.read(order, "amount_details")
    outcome = replay_here(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert {"had a fault" in each for each in outcome.skipped} == {True}


def test_ids_of_lost_responses_are_mapped(sandbox: Sandbox) -> None:
    """A replay maps the ids of orders and refunds whose creation lost its response."""
    lost = {"status": 503, "phase": "after"}
    set_fault(sandbox, **lost)
    assert sandbox.create(card(capture_mode="manual")).status_code == 503
    order = sandbox.pay(sandbox.get("/control/orders/").json()["items"][0])
    sandbox.take(order, "captures/amount", {"amount": 500})
    for _ in range(2):
        set_fault(sandbox, **lost)
        assert sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).status_code == 503
    for each in sandbox.get("/control/state/").json()["orders"]:
        sandbox.read(each["id"])
    outcome = replay_here(sandbox, evidence(sandbox, order))
    assert (outcome.differences, len(outcome.skipped)) == ([], 3)


def test_requests_about_earlier_orders_are_skipped(sandbox: Sandbox) -> None:
    """A replay skips requests about orders and cards from before the evidence."""
    sandbox.settings(recurring_enabled=True)
    first = sandbox.pay(sandbox.place(details(recurring_type="first")))
    token = first["transactions"][0]["payment_method_details"]["vault_token"]
    state = sandbox.get("/control/state/").json()
    assert sandbox.put("/control/state/", state).status_code == 200
    sandbox.read(first)
    sandbox.place(details(recurring_type="recurring", vault_token=token))
    outcome = replay_here(sandbox, evidence(sandbox, sandbox.acted(sandbox.place(card()), "customer pay")))
    assert outcome.differences == []
    assert ["from before" in each for each in outcome.skipped] == [True, True]


@pytest.mark.parametrize(
    "wrong", [{}, [], None, {"format": "payment-orders-sandbox-evidence/1"}, {"format": "x"}]
)
def test_other_files_are_refused(sandbox: Sandbox, wrong: Any) -> None:
    """Files in another format are refused before a project is created."""
    before = len(sandbox.get("/control/projects/").json()["items"])
    with pytest.raises(RecordingRefused):
        replay_here(sandbox, wrong)
    assert len(sandbox.get("/control/projects/").json()["items"]) == before


def test_the_command_reports_the_result(sandbox: Sandbox, tmp_path: Path) -> None:
    """The command ``replay`` reports its result in its output and its exit code."""
    order = sandbox.pay(sandbox.place(card()))
    data = evidence(sandbox, order)
    file = tmp_path / "evidence.json"
    environment = {"SANDBOX_URL": sandbox.url}
    file.write_text(json.dumps(data))
    completed = run("replay", str(file), **environment)
    assert (completed.returncode, "no difference" in completed.stdout) == (0, True), completed.stderr
    data["journal"][0]["response"]["amount"] = 5
    file.write_text(json.dumps(data))
    completed = run("replay", str(file), **environment)
    assert (completed.returncode, "different: step 1," in completed.stdout) == (1, True)
    for text in ("{}", "no JSON"):
        file.write_text(text)
        completed = run("replay", str(file), **environment)
        assert (completed.returncode, "cannot be replayed" in completed.stderr) == (2, True)


def expect_identical_replay(sandbox: Sandbox, order: dict[str, Any]) -> None:
    """Check that a replay has no differences and skips nothing."""
    outcome = replay_here(sandbox, evidence(sandbox, order))
    assert (outcome.differences, outcome.skipped) == ([], [])


RETURN_URL = "https://shop.example/thanks?name=Jan%20de%20Vries%22"


@pytest.mark.parametrize("kind", ["one_click_type", "recurring_type"])
@pytest.mark.parametrize("resets", [0, 2])
def test_a_stored_card_is_charged_again(sandbox: Sandbox, kind: str, resets: int) -> None:
    """A masked card code gets a placeholder; asterisks and escapes in other texts do no harm, also after resets."""
    for _ in range(resets):
        sandbox.post("/control/reset/")
    sandbox.settings(one_click_enabled=True, recurring_enabled=True)
    first = sandbox.place(
        details(**{kind: "first"}), description="***", extra={"security_code": "4711"}, return_url=RETURN_URL
    )
    assert first["return_url"] == RETURN_URL
    sandbox.pay(first)
    token = sandbox.read(first)["transactions"][0]["payment_method_details"]["vault_token"]
    value = "one-click" if kind == "one_click_type" else "recurring"
    code = {"cvc": "737"} if kind == "one_click_type" else {}
    charge = sandbox.place(details(**{kind: value, "vault_token": token, **code}), return_url=RETURN_URL)
    entry = evidence(sandbox, charge)["journal"][-1]
    assert '"737"' not in json.dumps(entry)
    assert b'"737"' not in b64decode(entry["raw"])
    expect_identical_replay(sandbox, charge)


def test_requests_are_repeated_as_they_were_sent(sandbox: Sandbox) -> None:
    """A replay repeats refused methods, entity tags of its own, malformed JSON and other media types."""
    order = sandbox.place(card())
    for method in ("OPTIONS", "HEAD", "PATCH"):
        sandbox.http.request(method, f"{sandbox.url}/v1/orders/", auth=(sandbox.key, ""))
    path = f"/v1/orders/{order['id']}/"
    assert sandbox.call("DELETE", path, headers={"If-Match": '"stale"'}).status_code == 412
    etag = sandbox.get(path).headers["ETag"]
    assert sandbox.call("GET", path, headers={"If-None-Match": etag}).status_code == 304
    assert sandbox.call("DELETE", path, headers={"If-Match": etag}).status_code == 200
    for body, media_type in (
        (b'{"a', "application/json"),
        (b"amount=1", "text/plain"),
        (b"", "application/json"),
        (b"[1]", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"amount": 1, "amount": 2}', "application/json"),
        ('{"currency": "EUR", "amount": 5, "description": "größer"}'.encode(), "application/json"),
    ):
        headers = {"Content-Type": media_type}
        sandbox.http.post(f"{sandbox.url}/v1/orders/", data=body, headers=headers, auth=(sandbox.key, ""))
    expect_identical_replay(sandbox, order)


@pytest.mark.parametrize("code", [737, "12"])
def test_a_refused_card_code_is_skipped(sandbox: Sandbox, code: object) -> None:
    """A replay skips a refused card code, because the evidence does not contain it."""
    order = sandbox.place(card())
    sandbox.settings(one_click_enabled=True)
    attempt = details(one_click_type="one-click", vault_token="token-x", cvc=code)
    assert sandbox.create(attempt).status_code == 400
    outcome = replay_here(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert ["refused with a card code" in skipped for skipped in outcome.skipped] == [True]


def test_webhook_urls_are_not_in_the_evidence(sandbox: Sandbox) -> None:
    """Evidence lists changed settings, except webhook URLs, which may contain secrets."""
    sandbox.settings(webhook_url="https://hooks.example/SECRET-TOKEN", refund_status="processing")
    for _ in range(3):
        sandbox.settings(webhook_url=None, name="Shop", refund_status="processing")
    data = evidence(sandbox, sandbox.place(card()))
    assert [choice["before"] for choice in data["choices"]] == [{"refund_status": "completed"}]
    assert "SECRET-TOKEN" not in json.dumps(data)


def test_too_long_data_is_reported(sandbox: Sandbox) -> None:
    """A replay reports scenarios and bodies that were too long to record."""
    rules = [{"when": {"amount": 1000 + n}, "then": {"customer": "pays"}} for n in range(600)]
    sandbox.scenario(*rules)
    sandbox.place(card(), amount=1000)
    sandbox.delete("/control/scenario/")
    order = sandbox.place(card(), extra={"long": "x" * 20_000})
    outcome = replay_here(sandbox, evidence(sandbox, order))
    assert "the scenario before" in outcome.skipped[0]
    assert any("had a body too large" in skipped for skipped in outcome.skipped)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["journal"][0].update(raw="a"),
        lambda data: data["journal"][0].update(raw="é"),
        lambda data: data["journal"][0]["headers"]["request"].update({"X-A": "€"}),
        lambda data: data["journal"][0]["headers"]["request"].update({"X-A": "a\r\nb"}),
        lambda data: data["snapshot"].update(settings="abc"),
        lambda data: data["choices"].append(
            {"kind": "settings", "before": ["name"], "at": "", "real_at": ""}
        ),
    ],
)
def test_malformed_evidence_is_refused(sandbox: Sandbox, change: Any) -> None:
    """Malformed evidence is refused, and its project is deleted."""
    data = evidence(sandbox, sandbox.place(card()))
    change(data)
    projects = len(sandbox.server.registry.all())
    with pytest.raises(RecordingRefused, match="malformed: "):
        replay_here(sandbox, data)
    assert len(sandbox.server.registry.all()) == projects


def test_each_step_has_its_settings_and_scenario(sandbox: Sandbox) -> None:
    """A replay uses the settings and the scenario of the time of each step."""
    paid = sandbox.pay(sandbox.place(card()))
    refunds = f"/v1/orders/{paid['id']}/refunds/"
    for end in ("pays", "cancels", "fails"):
        sandbox.scenario({"when": {"amount": 777}, "then": {"customer": end, "after": "PT1M"}})
        sandbox.place(card(), amount=777)
        sandbox.advance("PT1M")
    sandbox.delete("/control/scenario/")
    sandbox.place(card(), amount=777)
    for status in ("processing", "completed", "processing"):
        sandbox.settings(refund_status=status)
        assert sandbox.post(refunds, {"amount": 100}).json()["status"] == status
    sandbox.settings(refund_status="completed", unknown_fields="reject")
    sandbox.call("POST", "/v1/orders/", {"amuont": 1})
    expect_identical_replay(sandbox, paid)


def test_another_server_gives_the_same_identifiers_after_a_reset(live: Sandbox) -> None:
    """A replay on another server has the same references, accounts and entity tags, and the settings of a reset."""
    live.settings(refund_status="processing")
    live.place(card())
    live.post("/control/reset/")
    transfer = live.acted(live.place(by("bank-transfer")), "bank credit", amount=1500)
    live.post(f"/v1/orders/{transfer['id']}/refunds/", {})
    redirect = live.pay(live.place(by("bank-redirect-nl")))
    path = f"/v1/orders/{live.read(redirect)['id']}/"
    assert live.call("DELETE", path, headers={"If-Match": '"stale"'}).status_code == 412
    with make_server(seed=2) as server, closing(SandboxClient(server.url, "sandbox-key")) as client:
        outcome = replay(client, evidence(live, transfer))
    assert (outcome.differences, outcome.skipped) == ([], [])


def test_changed_settings_survive_a_restart(tmp_path: Path) -> None:
    """Evidence includes changed settings from a state file; older evidence replays without them."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        sandbox = Sandbox(server)
        key = sandbox.key
        order = sandbox.pay(sandbox.place(card()))
        sandbox.settings(refund_status="processing")
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100})
        sandbox.settings(refund_status="completed")
    with make_server(state=state) as server:
        sandbox = Sandbox(server)
        sandbox.key, sandbox.project = key, {**sandbox.project, "project_id": order["project_id"]}
        data = evidence(sandbox, order)
        outcome = replay_here(sandbox, data)
        assert (outcome.differences, outcome.skipped) == ([], [])
        del data["choices"]
        for entry in data["journal"]:
            del entry["raw"]
        assert any("instead of processing" in each for each in replay_here(sandbox, data).differences)
