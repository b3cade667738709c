"""The catalogue of variations: its scenarios, its switches, and what rehearsals try."""

from types import SimpleNamespace
from typing import Any

import pytest

from payment_sandbox import PaymentSandbox
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.scenarios import variation_catalogue
from payment_sandbox.scenarios.catalogue import ready_texts
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.variation import (
    ATTEMPT,
    PRESS,
    OfferedIn,
    Step,
    SubmittedForm,
    VariationOffer,
)
from payment_sandbox.ui.dashboard.simulate import switches
from pytest_payment_sandbox.rehearsal.changes import possible_changes
from tests.support.in_process import project_of


@pytest.mark.parametrize(
    "offer", variation_catalogue.offers_in(OfferedIn.SCENARIO).values(), ids=lambda offer: offer.name
)
def test_scenarios_of_the_catalogue_are_valid(offer: VariationOffer) -> None:
    """Scenarios of the catalogue load like files, and their names are unique."""
    loaded = load_scenario(offer.scenario, METHOD_NAMES)
    assert (loaded.name, loaded.description) == (offer.name, offer.sentence)
    assert offer.name not in {path.stem for path in ready_texts()}


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
