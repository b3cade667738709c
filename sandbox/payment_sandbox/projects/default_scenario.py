"""The default scenario: customers and banks wait for calls, and trigger values cause failures."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from payment_sandbox.methods import ALL_METHODS, METHOD_NAMES, REFUND
from payment_sandbox.methods.common import TriggerValue
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import Scenario

DEFAULT_NAME: Final = "default"


def default_document() -> dict[str, Any]:
    """Build the document from the methods' trigger values; methods with equal triggers share a rule."""
    return {
        "name": DEFAULT_NAME,
        "description": "Customers and banks wait for calls; some email addresses and amounts cause failures.",
        "rules": [
            *_trigger_rules(),
            *(_build_rule(trigger, refund=True) for trigger in REFUND.capabilities.triggers),
        ],
    }


@cache
def default_scenario() -> Scenario:
    """Load the default scenario once."""
    return load_scenario(default_document(), METHOD_NAMES)


def _trigger_rules() -> Iterator[dict[str, Any]]:
    methods_of: dict[str, tuple[TriggerValue, list[str]]] = {}
    for method in ALL_METHODS:
        for trigger in method.capabilities.triggers:
            methods_of.setdefault(repr(trigger), (trigger, []))[1].append(method.name)
    by_value = sorted(methods_of.values(), key=lambda settings: settings[0].amount or 0)
    for trigger, names in by_value:
        yield _build_rule(trigger, payment_method=names)


def _build_rule(trigger: TriggerValue, **when: Any) -> dict[str, Any]:
    if trigger.local_part is not None:
        when["customer"] = {"email_address": f"{trigger.local_part}@*"}
    if trigger.amount is not None:
        when["amount"] = trigger.amount
    return {"when": when, "then": dict(trigger.then)}
