"""Effects can be written as objects or as data in a document, with the same meaning."""

from datetime import timedelta
from typing import Any

import pytest

import payment_sandbox
from payment_sandbox import (
    Answer,
    Delay,
    Drop,
    Duplicate,
    ErrorStatus,
    Fault,
    Hang,
    PaymentSandbox,
    RateLimit,
    Reset,
    Swap,
    Timeout,
    Together,
    Truncate,
)
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.forms import read
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.scenarios.effects import REQUEST_EFFECTS, WEBHOOK_EFFECTS, Effect, WebhookEffect
from payment_sandbox.scenarios.scenario_forms import FaultsForm

ATTEMPT, POST = {"attempt": 1}, {"method": "POST", "nth": 1}
EFFECTS: tuple[tuple[str, dict[str, Any], Any, dict[str, Any]], ...] = (
    ("webhooks", ATTEMPT, Answer(503), {"answer": 503}),
    ("webhooks", ATTEMPT, Timeout(), {"timeout": True}),
    ("webhooks", ATTEMPT, Drop(), {"drop": True}),
    ("webhooks", ATTEMPT, Duplicate(2), {"duplicate": 2}),
    ("webhooks", ATTEMPT, Together(2), {"together": 2}),
    ("webhooks", ATTEMPT, Delay("PT10M"), {"delay": "PT10M"}),
    ("webhooks", ATTEMPT, Delay(timedelta(minutes=10)), {"delay": "PT10M"}),
    ("webhooks", ATTEMPT, Swap(), {"swap": True}),
    ("faults", POST, ErrorStatus(503), {"status": 503}),
    ("faults", POST, Hang(5), {"hang": 5}),
    ("faults", POST, Reset(), {"reset": True}),
    ("faults", POST, Truncate(), {"truncate": True}),
    ("faults", POST, RateLimit(10, "PT1S"), {"rate_limit": "10/PT1S"}),
    ("faults", POST, Fault(ErrorStatus(503), is_after=True), {"status": 503, "phase": "after"}),
    ("faults", POST, Fault(Reset(), latency=0.5), {"reset": True, "latency": 0.5}),
    ("faults", POST, Fault(latency=0.5), {"latency": 0.5}),
)


@pytest.mark.parametrize(("kind", "when", "effect", "document"), EFFECTS, ids=str)
def test_effects_are_accepted_as_objects(
    payment_sandbox: PaymentSandbox, kind: str, when: dict[str, Any], effect: Any, document: dict[str, Any]
) -> None:
    """Effects are accepted alone, in a rule and in a scenario, those on requests with latency and phase."""
    client = payment_sandbox.client
    response: Any = client.faults(**{kind: [effect, {"when": when, "then": effect}]})
    assert response[kind] == [{"then": document}, {"when": when, "then": document}]
    scenario = payment_sandbox.scenario({"name": "mine", kind: [effect]})
    assert scenario == client.scenario({"name": "mine", kind: [{"then": document}]})


def test_every_effect_of_documents_is_exported() -> None:
    """The package exports every effect under its name."""
    effects: list[type[Effect]] = [*REQUEST_EFFECTS, *WEBHOOK_EFFECTS]
    assert {effect.__name__ for effect in effects} <= set(payment_sandbox.__all__)
    assert all(getattr(payment_sandbox, effect.__name__) is effect for effect in effects)
    listed = {type(effect) for _, _, effect, _ in EFFECTS} - {Fault}
    assert listed == set(effects), "the table above must have every effect"


@pytest.mark.parametrize("wrong", [Answer(42), Duplicate(1), Together(11), ErrorStatus(200)], ids=str)
def test_wrong_values_are_refused_as_in_documents(wrong: Effect) -> None:
    """Wrong values of effect objects are refused by the form for documents."""
    kind = "webhooks" if isinstance(wrong, WebhookEffect) else "faults"
    with pytest.raises(Invalid, match=f"then.{wrong.key}: must be"):
        read(FaultsForm(), {kind: [{"then": wrong.document}]})


def test_other_objects_are_refused(payment_sandbox: PaymentSandbox) -> None:
    """An object that is not an effect is refused before the call."""
    rules: Any = [{"then": object()}]
    with pytest.raises(TypeError, match="is not a JSON value"):
        payment_sandbox.client.faults(rules)
    assert isinstance(payment_sandbox.client, SandboxClient)
