"""Evidence from the dashboard is played again, and differences are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.replaying import EvidenceRefused, ReplayOutcome, replay
from tests.support.commands import run
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Payer, payment_page
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
        (lambda found: found["actions"].append(found["actions"][0]), "is not possible any more"),
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


def test_what_cannot_be_compared_is_said(sandbox: Sandbox) -> None:
    """A request that had a fault."""
    order = sandbox.place(card())
    sandbox.put("/control/faults/", {"faults": [{"then": {"status": 503}}]})
    assert sandbox.get(f"/v1/orders/{order['id']}/").status_code == 503
    sandbox.delete("/control/faults/")
    outcome = played(sandbox, evidence(sandbox, order))
    assert outcome.differences == []
    assert "had a fault" in outcome.skipped[0]


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
    assert (ran.returncode, "all went the same way" in ran.stdout) == (0, True), ran.stderr
    found["journal"][0]["response"]["amount"] = 5
    file.write_text(json.dumps(found))
    ran = run("replay", str(file), **environment)
    assert (ran.returncode, "different: step 1," in ran.stdout) == (1, True)
    for text in ("{}", "no JSON"):
        file.write_text(text)
        ran = run("replay", str(file), **environment)
        assert (ran.returncode, "cannot be played" in ran.stderr) == (2, True)
