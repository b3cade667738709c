"""Evidence from the dashboard is played again, and differences are told."""

import json
from base64 import b64decode
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.replaying import EvidenceRefused, ReplayOutcome, replay
from tests.support.commands import run
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card, details
from tests.support.payer import Payer, payment_page
from tests.support.servers import make_server
from tests.support.shop import Received, Shop


def evidence(sandbox: Sandbox, order: dict[str, Any]) -> dict[str, Any]:
    """As the dashboard saves it."""
    browser = Dashboard(sandbox)
    saved = browser.http.get(f"{browser.base}orders/{order['id']}/evidence.json", timeout=10)
    found: dict[str, Any] = saved.json()
    return found


def played(sandbox: Sandbox, found: dict[str, Any]) -> ReplayOutcome:
    """On the same server."""
    return replay(SandboxClient(sandbox.url, sandbox.key), found)


def busy(watched: Sandbox, shop: Shop) -> dict[str, Any]:
    """An authorization that is captured in parts, a refund, a failed attempt, a refusal, an expiry."""

    def read(received: Received) -> int:
        watched.read(received.body["order_id"])
        return 204

    shop.answer = read
    watched.settings(name="Kousen")
    watched.scenario({"when": {"amount": 777}, "then": {"customer": "pays", "after": "PT1M"}})
    held = watched.authorized(expiration_period="P7D")
    watched.advance("P1D")
    watched.take(held, "captures/amount", {"amount": 500})
    watched.post(f"/v1/orders/{held['id']}/refunds/", {"amount": 200})
    watched.post(f"/v1/orders/{held['id']}/refunds/", {"amount": 9999})
    payer = Payer(watched)
    payer.press(payer.open(payment_page(watched.place(by("wallet-web")))), "fail")
    watched.place(card(), amount=777)
    watched.place(card())
    watched.advance("PT1H")
    watched.create(amount=0)
    browser = Dashboard(watched)
    browser.press(browser.open(f"orders/{held['id']}/"), "merchant void", amount="1.00")
    return held


def test_it_goes_the_same_way(watched: Sandbox, shop: Shop) -> None:
    """Every response, and every order in the end; the shop gets no webhooks of the replay."""
    order = busy(watched, shop)
    found = evidence(watched, order)
    received = len(shop.received)
    projects = len(watched.server.registry.all())
    outcome = played(watched, found)
    assert (outcome.differences, outcome.skipped) == ([], [])
    assert outcome.steps > 15
    assert len(watched.server.registry.all()) == projects, "nothing is left of it"
    assert len(shop.received) == received


def test_a_replay_that_cannot_begin_leaves_nothing(watched: Sandbox, shop: Shop) -> None:
    """Its scenario is refused."""
    found = evidence(watched, busy(watched, shop))
    found["snapshot"]["scenario"]["name"] = "not a name"
    projects = len(watched.server.registry.all())
    with pytest.raises(SandboxError):
        played(watched, found)
    assert len(watched.server.registry.all()) == projects


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found["journal"][0]["response"].update(amount=5), "amount is 1000 instead of 5"),
        (lambda found: found["journal"][1].update(status=404), "answered 200 instead of 404"),
        (lambda found: found["snapshot"]["orders"][0].update(status="expired"), "instead of expired"),
        (lambda found: found["actions"].append(found["actions"][0]), "is no longer possible"),
    ],
)
def test_differences_are_told(sandbox: Sandbox, change: Any, told: str) -> None:
    """In responses, statuses, actions, and orders at the end."""
    order = sandbox.pay(sandbox.place(card()))
    sandbox.read(order)
    found = evidence(sandbox, order)
    change(found)
    outcome = played(sandbox, found)
    assert any(told in difference for difference in outcome.differences), outcome.differences
    project = sandbox.server.registry.find_by_id(outcome.project_id)
    assert project is not None, "it can be looked at"
    assert project.settings.expires_after == "P7D", "and goes if nobody does"


def test_what_cannot_be_compared_is_said(sandbox: Sandbox) -> None:
    """A request that had a fault."""
    order = sandbox.place(card())
    sandbox.put("/control/faults/", {"faults": [{"then": {"status": 503}}]})
    assert sandbox.get(f"/v1/orders/{order['id']}/").status_code == 503
    sandbox.delete("/control/faults/")
    outcome = played(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert "had a fault" in outcome.skipped[0]


def fails_once(sandbox: Sandbox, **then: Any) -> None:
    """Let the next POST have a fault, or the second for a rate."""
    which = {} if "rate_limit" in then else {"nth": 1}
    fault = {"when": {"method": "POST", **which}, "then": then}
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
def test_a_request_is_made_again_if_it_was_processed(
    sandbox: Sandbox, fault: dict[str, Any], second: int
) -> None:
    """What a fault prevented is left out; what happened before a response was lost happens again."""
    order = sandbox.authorized()
    fails_once(sandbox, **fault)
    for _ in range(2):
        with suppress(requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
            status = sandbox.take(order, "captures/amount", {"amount": 1500}).status_code
    assert status == second
    sandbox.read(order, "amount_details")
    outcome = played(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert {"had a fault" in each for each in outcome.skipped} == {True}


def test_what_a_lost_response_made_is_known(sandbox: Sandbox) -> None:
    """An order and a refund whose identifiers the shop learned otherwise."""
    lost = {"status": 503, "phase": "after"}
    fails_once(sandbox, **lost)
    assert sandbox.create(card(capture_mode="manual")).status_code == 503
    order = sandbox.pay(sandbox.get("/control/orders/").json()["items"][0])
    sandbox.take(order, "captures/amount", {"amount": 500})
    for _ in range(2):
        fails_once(sandbox, **lost)
        assert sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100}).status_code == 503
    for made in sandbox.get("/control/state/").json()["orders"]:
        sandbox.read(made["id"])
    outcome = played(sandbox, evidence(sandbox, order))
    assert (outcome.differences, len(outcome.skipped)) == ([], 3)


def test_what_was_made_before_the_evidence_begins_is_left_out(sandbox: Sandbox) -> None:
    """As after a snapshot was put back: its orders and cards have no step that made them."""
    sandbox.settings(recurring_enabled=True)
    first = sandbox.pay(sandbox.place(details(recurring_type="first")))
    token = first["transactions"][0]["payment_method_details"]["vault_token"]
    state = sandbox.get("/control/state/").json()
    assert sandbox.put("/control/state/", state).status_code == 200
    sandbox.read(first)
    sandbox.place(details(recurring_type="recurring", vault_token=token))
    outcome = played(sandbox, evidence(sandbox, sandbox.acted(sandbox.place(card()), "customer pay")))
    assert outcome.differences == []
    assert ["from before" in each for each in outcome.skipped] == [True, True]


def test_requests_of_any_method_are_made_again(sandbox: Sandbox) -> None:
    """Also those that are refused."""
    order = sandbox.place(card())
    for method in ("OPTIONS", "HEAD", "PATCH"):
        sandbox.http.request(method, f"{sandbox.url}/v1/orders/", auth=(sandbox.key, ""))
    same_again(sandbox, order)


@pytest.mark.parametrize(
    "wrong", [{}, [], None, {"format": "payment-orders-sandbox-evidence/1"}, {"format": "x"}]
)
def test_other_files_are_refused(sandbox: Sandbox, wrong: Any) -> None:
    """Before a project is made."""
    before = len(sandbox.get("/control/projects/").json()["items"])
    with pytest.raises(EvidenceRefused):
        played(sandbox, wrong)
    assert len(sandbox.get("/control/projects/").json()["items"]) == before


def test_the_command_says_how_it_went(sandbox: Sandbox, tmp_path: Path) -> None:
    """By its exit code, too."""
    order = sandbox.pay(sandbox.place(card()))
    found = evidence(sandbox, order)
    file = tmp_path / "evidence.json"
    environment = {"SANDBOX_URL": sandbox.url}
    file.write_text(json.dumps(found))
    ran = run("replay", str(file), **environment)
    assert (ran.returncode, "no difference" in ran.stdout) == (0, True), ran.stderr
    found["journal"][0]["response"]["amount"] = 5
    file.write_text(json.dumps(found))
    ran = run("replay", str(file), **environment)
    assert (ran.returncode, "different: step 1," in ran.stdout) == (1, True)
    for text in ("{}", "no JSON"):
        file.write_text(text)
        ran = run("replay", str(file), **environment)
        assert (ran.returncode, "cannot be replayed" in ran.stderr) == (2, True)


def same_again(sandbox: Sandbox, order: dict[str, Any]) -> None:
    """A replay goes the same way, and leaves nothing out."""
    outcome = played(sandbox, evidence(sandbox, order))
    assert (outcome.differences, outcome.skipped) == ([], [])


@pytest.mark.parametrize("kind", ["one_click_type", "recurring_type"])
@pytest.mark.parametrize("resets", [0, 2])
def test_a_stored_card_is_charged_again(sandbox: Sandbox, kind: str, resets: int) -> None:
    """With a stand-in for its code, of which nothing is kept; also after resets, with their other identifiers."""
    for _ in range(resets):
        sandbox.post("/control/reset/")
    sandbox.settings(one_click_enabled=True, recurring_enabled=True)
    first = sandbox.place(details(**{kind: "first"}))
    sandbox.pay(first)
    token = sandbox.read(first)["transactions"][0]["payment_method_details"]["vault_token"]
    value = "one-click" if kind == "one_click_type" else "recurring"
    code = {"cvc": "737"} if kind == "one_click_type" else {}
    again = sandbox.place(details(**{kind: value, "vault_token": token, **code}))
    charged = evidence(sandbox, again)["journal"][-1]
    assert '"737"' not in json.dumps(charged)
    assert b'"737"' not in b64decode(charged["raw"])
    same_again(sandbox, again)


def test_conditional_requests_are_made_again(sandbox: Sandbox) -> None:
    """With the entity tags of the replay; a refused cancellation cancels nothing there."""
    order = sandbox.place(card())
    place = f"/v1/orders/{order['id']}/"
    assert sandbox.call("DELETE", place, headers={"If-Match": '"stale"'}).status_code == 412
    etag = sandbox.get(place).headers["ETag"]
    assert sandbox.call("GET", place, headers={"If-None-Match": etag}).status_code == 304
    assert sandbox.call("DELETE", place, headers={"If-Match": etag}).status_code == 200
    same_again(sandbox, order)


def test_bodies_are_sent_again_as_they_were(sandbox: Sandbox) -> None:
    """Also those that are no JSON, or of another type."""
    order = sandbox.place(card())
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
    same_again(sandbox, order)


@pytest.mark.parametrize("code", [737, "12"])
def test_a_refused_card_code_is_left_out(sandbox: Sandbox, code: object) -> None:
    """Nothing is kept of it, so nobody can tell how it was refused."""
    order = sandbox.place(card())
    sandbox.settings(one_click_enabled=True)
    sent = details(one_click_type="one-click", vault_token="token-x", cvc=code)
    assert sandbox.create(sent).status_code == 400
    outcome = played(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert ["refused with a card code" in skipped for skipped in outcome.skipped] == [True]


def test_only_card_codes_get_a_stand_in(sandbox: Sandbox) -> None:
    """What looks like a mask stays, and an address keeps its escapes beside a code."""
    sandbox.settings(one_click_enabled=True)
    order = sandbox.place(card(), description="***", extra={"security_code": "4711"})
    first = sandbox.place(details(one_click_type="first"))
    sandbox.pay(first)
    token = sandbox.read(first)["transactions"][0]["payment_method_details"]["vault_token"]
    sent = details(one_click_type="one-click", vault_token=token, cvc="737")
    back = "https://shop.example/thanks?name=Jan%20de%20Vries%22"
    assert sandbox.place(sent, return_url=back)["return_url"] == back
    same_again(sandbox, order)


def test_addresses_of_webhooks_are_no_choices(sandbox: Sandbox) -> None:
    """They may be secrets, and a replay sends nothing there; nor is a choice what changes nothing."""
    sandbox.settings(webhook_url="https://hooks.example/SECRET-TOKEN", refund_status="processing")
    for _ in range(3):
        sandbox.settings(webhook_url=None, name="Shop", refund_status="processing")
    found = evidence(sandbox, sandbox.place(card()))
    assert [choice["before"] for choice in found["choices"]] == [{"refund_status": "completed"}]
    assert "SECRET-TOKEN" not in json.dumps(found)


def test_what_was_too_long_to_be_kept_is_said(sandbox: Sandbox) -> None:
    """A scenario, and a body."""
    rules = [{"when": {"amount": 1000 + n}, "then": {"customer": "pays"}} for n in range(600)]
    sandbox.scenario(*rules)
    sandbox.place(card(), amount=1000)
    sandbox.delete("/control/scenario/")
    order = sandbox.place(card(), extra={"long": "x" * 20_000})
    outcome = played(sandbox, evidence(sandbox, order))
    assert "the scenario before" in outcome.skipped[0]
    assert any("had a body too large" in skipped for skipped in outcome.skipped)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found["journal"][0].update(raw="a"),
        lambda found: found["journal"][0].update(raw="é"),
        lambda found: found["journal"][0]["headers"]["request"].update({"X-A": "€"}),
        lambda found: found["journal"][0]["headers"]["request"].update({"X-A": "a\r\nb"}),
        lambda found: found["snapshot"].update(settings="abc"),
        lambda found: found["choices"].append(
            {"kind": "settings", "before": ["name"], "at": "", "real_at": ""}
        ),
    ],
)
def test_malformed_evidence_is_refused(sandbox: Sandbox, change: Any) -> None:
    """By name, and leaves no project."""
    found = evidence(sandbox, sandbox.place(card()))
    change(found)
    projects = len(sandbox.server.registry.all())
    with pytest.raises(EvidenceRefused, match="malformed: "):
        played(sandbox, found)
    assert len(sandbox.server.registry.all()) == projects


def test_settings_and_scenarios_are_those_of_each_step(sandbox: Sandbox) -> None:
    """As they were when it happened, and not as they are in the end."""
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
    same_again(sandbox, paid)


def test_evidence_after_a_reset_is_that_of_the_time_after_it(sandbox: Sandbox) -> None:
    """With the settings that stay."""
    sandbox.settings(refund_status="processing")
    sandbox.pay(sandbox.place(card()))
    sandbox.post("/control/reset/")
    order = sandbox.pay(sandbox.place(card()))
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100})
    same_again(sandbox, order)


def test_another_server_gives_the_same_identifiers_after_a_reset(live: Sandbox) -> None:
    """References, accounts and entity tags included."""
    live.place(card())
    live.post("/control/reset/")
    transfer = live.acted(live.place(by("bank-transfer")), "bank credit", amount=1500)
    live.post(f"/v1/orders/{transfer['id']}/refunds/", {})
    redirect = live.pay(live.place(by("bank-redirect-nl")))
    place = f"/v1/orders/{live.read(redirect)['id']}/"
    assert live.call("DELETE", place, headers={"If-Match": '"stale"'}).status_code == 412
    with make_server(seed=2) as server, closing(SandboxClient(server.url, "sandbox-key")) as client:
        outcome = replay(client, evidence(live, transfer))
    assert (outcome.differences, outcome.skipped) == ([], [])


def test_what_was_chosen_is_known_after_a_restart(tmp_path: Path) -> None:
    """A state file keeps it; evidence of an older version has none of it, and is played as before."""
    state = tmp_path / "state.db"
    with make_server(state=state) as server:
        sandbox = Sandbox(server)
        kept = sandbox.key
        order = sandbox.pay(sandbox.place(card()))
        sandbox.settings(refund_status="processing")
        sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 100})
        sandbox.settings(refund_status="completed")
    with make_server(state=state) as server:
        sandbox = Sandbox(server)
        sandbox.key, sandbox.project = kept, {**sandbox.project, "project_id": order["project_id"]}
        found = evidence(sandbox, order)
        outcome = played(sandbox, found)
        assert (outcome.differences, outcome.skipped) == ([], [])
        del found["choices"]
        for entry in found["journal"]:
            del entry["raw"]
        assert any("instead of processing" in each for each in played(sandbox, found).differences)
