"""Load scenarios from documents; a refusal lists all errors in the document."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from payment_sandbox.forms import load, unknown_keys
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.effects import Fault, read_webhook_effect
from payment_sandbox.scenarios.model import AmountRange, FaultRule, Scenario, ScenarioRule, WebhookRule, When
from payment_sandbox.scenarios.scenario_forms import ScenarioForm

SCENARIO_FORM: Final = ScenarioForm()
RULE_LISTS: Final = ("rules", "webhooks", "faults")
VIOLATIONS_MAX: Final = 1_000  # per kind; higher than for requests, because users fix whole files

CheckSettings = Callable[[Mapping[str, Any]], object]
"""Refuses unknown settings; passed in, because this package must not import ``projects``."""


def load_scenario(
    document: Any,
    methods: Sequence[str],
    check_settings: CheckSettings | None = None,
    *,
    file_name: str | None = None,
) -> Scenario:
    """Read a scenario document; ``methods`` are the allowed method names, including aliases.

    With a ``file_name``, the scenario must have that name.

    Raises:
        Invalid: lists all errors (SCN-01), up to a thousand of each kind.
    """
    data, violations = load(SCENARIO_FORM, document, most=VIOLATIONS_MAX)
    violations += [
        key.violation(key.nearest()) for key in unknown_keys(SCENARIO_FORM, document)[:VIOLATIONS_MAX]
    ]
    if isinstance(document, dict):
        violations += islice(_name_violations(document, methods), VIOLATIONS_MAX)
        violations += _settings_violations(document.get("settings"), check_settings)
        if file_name is not None and data.get("name", file_name) != file_name:
            violations.append(Violation("name", f"must be the file's name, {file_name!r}"))
    if violations:
        raise Invalid(violations)
    return Scenario(
        name=data["name"],
        document={
            key: [as_written(rule) for rule in value] if key in RULE_LISTS else value
            for key, value in document.items()
        },
        description=data.get("description", ""),
        settings=data.get("settings", {}),
        rules=tuple(_build_rule(rule) for rule in data.get("rules", ())),
        webhooks=webhook_rules(data),
        faults=fault_rules(data),
    )


def as_written(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule without the number of its matches, which answers add."""
    return {name: value for name, value in rule.items() if name != "matches"}


def _settings_violations(settings: Any, check_settings: CheckSettings | None) -> list[Violation]:
    if check_settings is None or not isinstance(settings, dict):
        return []
    try:
        check_settings(settings)
    except Invalid as invalid:
        return invalid.violations
    return []


def webhook_rules(data: Mapping[str, Any]) -> tuple[WebhookRule, ...]:
    """Create the webhook rules from validated data."""
    return tuple(
        WebhookRule(read_webhook_effect(rule["then"]), **rule["when"]) for rule in data.get("webhooks", ())
    )


def fault_rules(data: Mapping[str, Any]) -> tuple[FaultRule, ...]:
    """Create the fault rules from validated data."""
    return tuple(
        FaultRule(
            Fault.from_data(rule["then"]),
            method=rule["when"].get("method"),
            path=rule["when"].get("path"),
            nth=frozenset(rule["when"]["nth"]) if "nth" in rule["when"] else None,
        )
        for rule in data.get("faults", ())
    )


def load_text(
    text: str, methods: Sequence[str], check_settings: CheckSettings, file: str | None = None
) -> Scenario:
    """Read a scenario from YAML or JSON text; a scenario in a file must have the file's name.

    Raises:
        Invalid: lists all errors, with line and column (SCN-01).
    """
    document = parse_yaml(text, file)
    with document.add_positions(file):
        file_name = Path(file).stem if file is not None else None
        return load_scenario(document.data, methods, check_settings, file_name=file_name)


def _build_rule(data: Mapping[str, Any]) -> ScenarioRule:
    when = dict(data["when"])
    methods = when.pop("payment_method", None)
    amount = when.pop("amount", None)
    return ScenarioRule(
        when=When(
            payment_methods=frozenset(methods) if methods is not None else None,
            amount=AmountRange(**amount) if amount is not None else None,
            **when,
        ),
        then=data["then"],
        times=data.get("times"),
    )


def _name_violations(document: Mapping[str, Any], methods: Sequence[str]) -> Iterator[Violation]:
    """Yield violations for unknown method names, even if the document is otherwise invalid."""
    settings = document.get("settings")
    aliases = settings.get("aliases") if isinstance(settings, dict) else None
    known = [*methods, *aliases] if isinstance(aliases, dict) else methods
    rules = document.get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        when = rule.get("when") if isinstance(rule, dict) else None
        named = when.get("payment_method") if isinstance(when, dict) else None
        for name in named if isinstance(named, list) else [named]:
            if isinstance(name, str) and name not in known:
                nearest = nearest_word(name, known)
                message = f"{name!r} is not a known payment method{did_you_mean(nearest)}"
                yield Violation(f"rules[{index}].when.payment_method", message, known, nearest)
