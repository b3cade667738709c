"""From a document to a scenario, or to all that is wrong with it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from payment_sandbox.forms import read
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.forms import ScenarioForm
from payment_sandbox.scenarios.model import AmountRange, FaultRule, Rule, Scenario, WebhookRule, When

FORM: Final = ScenarioForm()

CheckSettings = Callable[[Mapping[str, Any]], object]
"""Refuses settings that no project has; who knows them is above this room."""


def load_scenario(document: Any, methods: Sequence[str]) -> Scenario:
    """Read a scenario document; ``methods`` are the names it may use, aliases among them.

    Raises:
        Invalid: lists all that is wrong (SCN-01).
    """
    data = read(FORM, document)
    own = data.get("settings", {}).get("aliases")
    _refuse_unknown_methods(data, [*methods, *own] if isinstance(own, dict) else methods)
    return Scenario(
        name=data["name"],
        document=document,
        description=data.get("description", ""),
        settings=data.get("settings", {}),
        rules=tuple(_rule(rule) for rule in data.get("rules", ())),
        webhooks=webhook_rules(data),
        faults=fault_rules(data),
    )


def webhook_rules(data: Mapping[str, Any]) -> tuple[WebhookRule, ...]:
    """The webhook rules of checked data."""
    return tuple(WebhookRule(rule["then"], **rule["when"]) for rule in data.get("webhooks", ()))


def fault_rules(data: Mapping[str, Any]) -> tuple[FaultRule, ...]:
    """The faults of checked data."""
    return tuple(
        FaultRule(
            then=rule["then"],
            method=rule["when"].get("method"),
            path=rule["when"].get("path"),
            nth=frozenset(rule["when"]["nth"]) if "nth" in rule["when"] else None,
        )
        for rule in data.get("faults", ())
    )


def load_text(
    text: str, methods: Sequence[str], check_settings: CheckSettings, file: str | None = None
) -> Scenario:
    """Read a scenario from YAML or JSON text; in a file its name is the file's.

    Raises:
        Invalid: lists all that is wrong, each with line and column (SCN-01).
    """
    document = parse_yaml(text, file)
    with document.placing(file):
        scenario = load_scenario(document.data, methods)
        check_settings(scenario.settings)
        if file is not None and scenario.name != Path(file).stem:
            raise Invalid([Violation("name", f"must be the file's name, {Path(file).stem!r}")])
    return scenario


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


def _unknown_method(path: str, name: str, methods: Sequence[str]) -> Violation:
    nearest = nearest_word(name, methods)
    message = f"{name!r} is no payment method here{did_you_mean(nearest)}"
    return Violation(path, message, methods, nearest)


def _refuse_unknown_methods(data: Mapping[str, Any], methods: Sequence[str]) -> None:
    violations = [
        _unknown_method(f"rules[{index}].when.payment_method", name, methods)
        for index, rule in enumerate(data.get("rules", ()))
        for name in rule["when"].get("payment_method", ())
        if name not in methods
    ]
    if violations:
        raise Invalid(violations)
