"""The catalogue of variations: one entry is found wherever variations are read."""

from types import SimpleNamespace
from typing import Any

import pytest

from payment_sandbox import PaymentSandbox, PaymentSandboxServer
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.by_hand import create_by_hand
from payment_sandbox.operations.coverage import coverage
from payment_sandbox.operations.what_if import replay_with
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios import variations
from payment_sandbox.scenarios.catalogue import ready_names
from payment_sandbox.scenarios.effects import Duplicate
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.variation import (
    ATTEMPT,
    PRESS,
    WEBHOOK,
    Document,
    OfferedIn,
    ReplacementScene,
    Step,
    SubmittedForm,
    Trait,
    Variation,
    VariationOffer,
)
from payment_sandbox.web.dashboard.faults import switches
from payment_sandbox.web.docs.contents import page
from pytest_payment_sandbox import sequences
from pytest_payment_sandbox.rehearsal.changes import parse_changed_step, possible_changes
from pytest_payment_sandbox.rehearsal.scenes import SCENE_PLAYERS
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card

EVERYWHERE = OfferedIn.WHAT_IF | OfferedIn.SWITCH | OfferedIn.SEQUENCE | OfferedIn.SCENARIO
RISK = "the shop ships three times"


def came_thrice(delivery: Delivery, settings: Document) -> bool:
    """How a webhook shows it."""
    return len(delivery.delivery_attempts) == 3


THRICE = Variation(
    "thrice",
    "{step} came three times",
    Duplicate(3),
    RISK,
    Trait.AT_ONCE,
    kinds=(WEBHOOK,),
    check=came_thrice,
).with_offers(VariationOffer("webhook-thrice", "Every webhook comes three times", EVERYWHERE))


@pytest.fixture
def thrice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has one more entry."""
    monkeypatch.setattr(variations, "VARIATIONS", (*variations.VARIATIONS, THRICE))


def a_webhook() -> Step:
    """A step of a test."""
    delivery: Any = SimpleNamespace(status="completed")
    return Step(WEBHOOK, 1, "the webhook of 'completed'", delivery)


def test_nothing_has_it_without_its_entry(payment_sandbox: PaymentSandbox, sandbox: Sandbox) -> None:
    """So that the other tests here can fail."""
    assert THRICE not in possible_changes(a_webhook())
    assert "webhook-thrice" not in ready_names()
    assert "thrice" not in variations.sequences()
    assert "webhook-thrice" not in Dashboard(sandbox).open().text
    assert "thrice" not in str(coverage(own(payment_sandbox), ()))
    assert "three times" not in page("rehearsal", lambda: "").text


@pytest.mark.usefixtures("thrice")
def test_rehearsals_play_it() -> None:
    """At each webhook, by its name, and it is told in its sentence."""
    assert THRICE in possible_changes(a_webhook())
    assert parse_changed_step("webhook:2:thrice").change is THRICE


@pytest.mark.usefixtures("thrice")
def test_the_dashboard_plays_it_once_more(watched: Sandbox) -> None:
    """With "What if …", for the new order only."""
    order = watched.acted(watched.place(card()), "customer pay")
    watched.settle()
    browser = Dashboard(watched)
    shown = browser.press(browser.open(f"orders/{order['id']}/"), "again=webhook-thrice")
    assert f"Every webhook comes three times. The risk: {RISK}." in shown.ids["notice"]
    made = watched.get("/control/orders/?limit=1").json()["items"][0]
    attempts = {item["order_id"]: len(item["attempts"]) for item in watched.webhooks()}
    assert (attempts[made["id"]], attempts[order["id"]]) == (3, 1)


@pytest.mark.usefixtures("thrice")
def test_a_switch_does_and_undoes_it(sandbox: Sandbox) -> None:
    """Of the dashboard."""
    browser = Dashboard(sandbox)
    shown = browser.press(browser.open(), "webhook-thrice")
    assert sandbox.get("/control/faults/").json()["webhooks"] == [{"then": {"duplicate": 3}}]
    assert "Every webhook comes three times" in shown.text
    browser.press(shown, "webhook-thrice")
    assert sandbox.get("/control/faults/").json()["webhooks"] == []


@pytest.mark.usefixtures("thrice")
def test_marked_tests_run_in_it(payment_sandbox: PaymentSandbox) -> None:
    """As one more sequence, before those of two variations."""
    assert list(variations.sequences())[-2:] == ["thrice", "twice, before the response"]
    sequences.configure_project(
        payment_sandbox, SimpleNamespace(params={sequences.SEQUENCE_FIXTURE: "thrice"})
    )
    assert payment_sandbox.client.call("GET", "/control/faults/")["webhooks"] == [{"then": {"duplicate": 3}}]


@pytest.mark.usefixtures("thrice")
def test_it_is_a_scenario_and_coverage_counts_it() -> None:
    """By its name, with a customer who pays; the shop met it then. A server reads the catalogue once."""
    server = PaymentSandboxServer()
    with server.project() as sandbox:
        assert met(sandbox)["thrice"] == []
        assert sandbox.scenario("webhook-thrice")["webhooks"] == [{"then": {"duplicate": 3}}]
        sandbox.deliver_to(lambda environ, start: start("204 No Content", []) or [])
        body = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "wallet-web"}]}
        made = sandbox.session.post(f"{sandbox.base_url}/v1/orders/", json=body, timeout=5).json()
        sandbox.clock.advance("PT10S")
        assert sandbox.client.order(made["id"])["status"] == "completed"
        assert met(sandbox)["thrice"] == [made["id"]]
    server.stop()


@pytest.mark.usefixtures("thrice")
def test_the_documentation_lists_it() -> None:
    """What happens, what it costs, where it is offered, and how it is undone."""
    shown = page("rehearsal", lambda: "").text
    assert f"| `webhook` | `thrice` | the webhook came three times | {RISK} |" in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("| Every webhook comes three times |")]
    for words in ("What if …", "switch", "sequences", "scenario `webhook-thrice`", RISK, "remove the rule"):
        assert words in line
    assert "`webhook-thrice` | Every webhook comes three times" in page("scenarios", lambda: "").text
    assert "thrice" in page("pytest", lambda: "").text


def own(sandbox: PaymentSandbox) -> Project:
    """The project in this process."""
    project = sandbox.server.project_of(sandbox.api_key)
    assert project is not None
    return project


def met(sandbox: PaymentSandbox) -> dict[str, list[str]]:
    """What coverage tells of webhooks."""
    (row,) = [row for row in coverage(own(sandbox), ()).others if row.title == "webhooks"]
    return {name: list(cell.right) for name, cell in row.cells.items()}


def test_every_entry_is_whole() -> None:
    """It says what happens and what that costs, and something can play it."""
    for each in variations.VARIATIONS:
        assert each.sentence, each.name
        assert each.risk, each.name
        assert each.kinds or each.offers, f"nobody can play {each.name}"
        if isinstance(each.effect, ReplacementScene) and each.kinds:
            assert each.effect in SCENE_PLAYERS, f"no scene plays {each.name}"


def test_names_are_unambiguous() -> None:
    """One entry for each kind of step and name, one offer for each place and name."""
    steps = [(kind, each.name) for each in variations.VARIATIONS for kind in each.kinds]
    assert len(steps) == len(set(steps))
    places = [(place, offer.name) for offer in variations.all_offers() for place in offer.offered_in]
    assert len(places) == len(set(places))


@pytest.mark.parametrize(
    "offer", variations.offers_in(OfferedIn.SCENARIO).values(), ids=lambda offer: offer.name
)
def test_scenarios_of_the_catalogue_are_valid(offer: VariationOffer) -> None:
    """As files are; their names mean nothing else."""
    loaded = load_scenario(offer.scenario, METHOD_NAMES)
    assert (loaded.name, loaded.description) == (offer.name, offer.sentence)
    assert ready_names().count(offer.name) == 1


@pytest.mark.parametrize(
    "offer", variations.offers_in(OfferedIn.SWITCH).values(), ids=lambda offer: offer.name
)
def test_every_switch_has_a_rule(payment_sandbox: PaymentSandbox, offer: VariationOffer) -> None:
    """Without one, it could not be switched on."""
    payment_sandbox.client.faults(**offer.rules)
    shown = {switch.offer.name: switch.is_on for switch in switches(own(payment_sandbox))}
    assert shown == {name: name == offer.name for name in shown}


@pytest.mark.parametrize("name", variations.offers_in(OfferedIn.WHAT_IF))
def test_every_offer_of_again_can_be_played(payment_sandbox: PaymentSandbox, name: str) -> None:
    """On an order that is authorized by hand, all are possible."""
    project = own(payment_sandbox)
    attempt = {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P1D"}
    body = {"currency": "EUR", "amount": 1000, "client": {}, "transactions": [attempt]}
    order = create_by_hand(project, body, body)
    made = replay_with(project, order, name, body, lambda changed: create_by_hand(project, changed, changed))
    assert made.status != project.find_order(order.id).status or name == "expires"


def test_attempts_and_forms_are_rehearsed_by_kind() -> None:
    """A step of another kind does not go so."""
    about: Any = SimpleNamespace(outcome_keys={"screening"}, screenings=(), is_refund=False)
    assert [each.name for each in possible_changes(Step(ATTEMPT, 1, "it", about))] == ["declined"]
    form = [each.name for each in possible_changes(Step(PRESS, 1, "it", SubmittedForm()))]
    assert form == ["twice", "together", "another-pays", "another-unpaid"]
