"""From a document to a scenario, or to all that is wrong with it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sandbox.forms import read
from sandbox.orders.refusals import Invalid, Violation
from sandbox.scenarios.forms import ScenarioForm
from sandbox.scenarios.model import AmountRange, Rule, Scenario, WebhookRule, When

FORM: Final = ScenarioForm()


def load_scenario(document: Any, methods: Sequence[str]) -> Scenario:
    """Read a scenario document; ``methods`` are the names it may use, aliases among them.

    Raises:
        Invalid: lists all that is wrong (SCN-01).
    """
    data = read(FORM, document)
    _refuse_unknown_methods(data, methods)
    return Scenario(
        name=data["name"],
        document=document,
        description=data.get("description", ""),
        settings=data.get("settings", {}),
        rules=tuple(_rule(rule) for rule in data.get("rules", ())),
        webhooks=tuple(WebhookRule(rule["then"], **rule["when"]) for rule in data.get("webhooks", ())),
    )


def _rule(data: Mapping[str, Any]) -> Rule:
    when = dict(data["when"])
    methods = when.pop("payment_method", None)
    amount = when.pop("amount", None)
    return Rule(
        when=When(
            payment_methods=frozenset(methods) if methods is not None else None,
            amount=AmountRange(**amount) if amount is not None else None,
            **when,
        ),
        then=data["then"],
        times=data.get("times"),
    )


def _refuse_unknown_methods(data: Mapping[str, Any], methods: Sequence[str]) -> None:
    violations = [
        Violation(f"rules[{index}].when.payment_method", f"{name!r} is no payment method here", methods)
        for index, rule in enumerate(data.get("rules", ()))
        for name in rule["when"].get("payment_method", ())
        if name not in methods
    ]
    if violations:
        raise Invalid(violations)
