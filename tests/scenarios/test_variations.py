"""The catalogue of variations: a new entry is available wherever variations are offered."""

from types import SimpleNamespace
from typing import Any

import pytest

from payment_sandbox import PaymentSandbox, PaymentSandboxServer
from payment_sandbox.judge.coverage import coverage
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.scenarios import variation_catalogue
from payment_sandbox.scenarios.catalogue import ready_names
from payment_sandbox.scenarios.effects import Duplicate
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.variation import (
    ATTEMPT,
    PRESS,
    TIME,
    WEBHOOK,
    Act,
    OfferedIn,
    ReplacementScene,
    Step,
    SubmittedForm,
    Trait,
    Variation,
    VariationOffer,
)
from payment_sandbox.ui.dashboard.simulate import switches
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step, possible_changes
from pytest_payment_sandbox.rehearsal.scenes import ACT_PLAYERS
from tests.documentation.parts import PARTS
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox
from tests.support.in_process import project_of

EVERYWHERE = OfferedIn.SWITCH | OfferedIn.SCENARIO
RISK = "the shop ships three times"


def delivered_thrice(delivery: Delivery, webhooks_first: bool) -> bool:
    """Return whether a webhook was delivered three times."""
    return len(delivery.delivery_attempts) == 3


THRICE = Variation(
    "thrice",
    "{step} came three times",
    Duplicate(3),
    RISK,
    Trait.AT_ONCE,
    kinds=(WEBHOOK,),
    check=delivered_thrice,
).with_offers(VariationOffer("webhook-thrice", "Every webhook comes three times", EVERYWHERE))


@pytest.fixture
def thrice(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    """A catalogue with one more entry; the shared server reads the catalogue once, before the change."""
    sandbox.get("/control/scenarios/")
    monkeypatch.setattr(variation_catalogue, "VARIATIONS", (*variation_catalogue.VARIATIONS, THRICE))


def webhook_step() -> Step:
    """Return a step about a webhook."""
    delivery: Any = SimpleNamespace(status="completed")
    return Step(WEBHOOK, 1, "the webhook of 'completed'", delivery)


@pytest.mark.usefixtures("thrice")
def test_rehearsals_and_the_documentation_offer_it() -> None:
    """A rehearsal offers it for each webhook; the documentation has its sentence, risk, offers and undoing."""
    assert THRICE in possible_changes(webhook_step())
    assert parse_changed_step("webhook:2:thrice").change is THRICE
    shown = PARTS["variations"]() + PARTS["offers"]()
    assert f"| `webhook` | `thrice` | the webhook came three times | {RISK} |" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("| Every webhook comes three times |")]
    for words in ("switch", "scenario `webhook-thrice`", RISK, "remove the rule"):
        assert words in line
    assert "`webhook-thrice` | Every webhook comes three times" in PARTS["ready-scenarios"]()


@pytest.mark.usefixtures("thrice")
def test_the_dashboard_offers_it(watched: Sandbox) -> None:
    """A switch applies the variation to all webhooks."""
    browser = Dashboard(watched)
    shown = browser.press(browser.open("simulate/"), "switch=webhook-thrice")
    assert watched.get("/control/faults/").json()["webhooks"] == [{"then": {"duplicate": 3}, "matches": 0}]
    assert "Every webhook comes three times" in shown.text
    browser.press(shown, "switch=webhook-thrice")
    assert watched.get("/control/faults/").json()["webhooks"] == []


@pytest.mark.usefixtures("thrice")
def test_it_is_a_scenario_and_coverage_counts_it() -> None:
    """The variation is a ready scenario, and coverage counts an order under it."""
    # a new server, because a server reads the catalogue once
    server = PaymentSandboxServer()
    with server.project() as sandbox:
        assert webhook_coverage(sandbox)["thrice"] == []
        assert sandbox.scenario("webhook-thrice")["webhooks"] == [{"then": {"duplicate": 3}}]
        sandbox.deliver_to(lambda environ, start: [start("204 No Content", []), []][1])
        body = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}
        order = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body).json()
        sandbox.clock.advance("PT10S")
        assert sandbox.client.order(order["id"])["status"] == "completed"
        assert webhook_coverage(sandbox)["thrice"] == [order["id"]]
    server.stop()


def webhook_coverage(sandbox: PaymentSandbox) -> dict[str, list[str]]:
    """Return the coverage of webhooks: the orders of each variation."""
    (row,) = [row for row in coverage(project_of(sandbox), ()).others if row.title == "webhooks"]
    return {name: list(cell.right) for name, cell in row.cells.items()}


def test_every_entry_is_complete() -> None:
    """Every variation has a sentence and a risk, and a step, an offer or coverage that uses it."""
    for each in variation_catalogue.VARIATIONS:
        assert each.sentence, each.name
        assert each.risk, each.name
        assert each.kinds or each.offers or each.check, f"nothing uses {each.name}"
        if isinstance(each.effect, ReplacementScene) and each.kinds:
            acts = {act for act in each.effect.acts if isinstance(act, Act)}
            assert acts <= ACT_PLAYERS.keys(), f"nothing plays {each.name}"
            assert TIME not in each.kinds or each.effect.acts[0] == variation_catalogue.DO, (
                "an advance comes first"
            )


def test_names_are_unambiguous() -> None:
    """Names are unique per kind of step, and offers per place."""
    steps = [(kind, each.name) for each in variation_catalogue.VARIATIONS for kind in each.kinds]
    assert len(steps) == len(set(steps))
    places = [(place, offer.name) for offer in variation_catalogue.all_offers() for place in offer.offered_in]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    "offer", variation_catalogue.offers_in(OfferedIn.SCENARIO).values(), ids=lambda offer: offer.name
)
def test_scenarios_of_the_catalogue_are_valid(offer: VariationOffer) -> None:
    """Scenarios of the catalogue load like files, and their names are unique."""
    loaded = load_scenario(offer.scenario, METHOD_NAMES)
    assert (loaded.name, loaded.description) == (offer.name, offer.sentence)
    assert ready_names().count(offer.name) == 1


@pytest.mark.parametrize(
    "offer", variation_catalogue.offers_in(OfferedIn.SWITCH).values(), ids=lambda offer: offer.name
)
def test_every_switch_has_a_rule(payment_sandbox: PaymentSandbox, offer: VariationOffer) -> None:
    """The rules of a switch turn on this switch and no other."""
    payment_sandbox.client.faults(**offer.rules)
    shown = {offer.name: is_on for offer, is_on in switches(project_of(payment_sandbox))}
    assert shown == {name: name == offer.name for name in shown}


def test_attempts_and_forms_are_rehearsed_by_kind() -> None:
    """Attempts and forms have only the variations of their kind."""
    attempt: Any = SimpleNamespace(outcome_keys={"screening"}, screenings=(), is_refund=False)
    assert [each.name for each in possible_changes(Step(ATTEMPT, 1, "it", attempt))] == ["declined"]
    form = [each.name for each in possible_changes(Step(PRESS, 1, "it", SubmittedForm()))]
    assert form == ["twice", "together", "again-later", "another-pays", "another-unpaid"]
