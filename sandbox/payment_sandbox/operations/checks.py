"""Checks whether a well-formed order is payable: an available method, and the method's fields."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import AttemptDraft, Method, Terms
from payment_sandbox.operations.attempts import available_methods, is_usable, unavailable_reason
from payment_sandbox.orders.order import missing_personal_data
from payment_sandbox.orders.refusals import QUOTED_WORD_LENGTH_MAX, VIOLATIONS_MAX, Violation
from payment_sandbox.projects.settings import Settings

REQUIRED_KEY_RULE: Final = "ORD-16"  # of a method whose module names no rule of its own
NO_USABLE_METHOD_RULE: Final = "GEN-04"


def check_order(
    data: Mapping[str, Any], form_violations: Sequence[Violation], settings: Settings, terms: Terms
) -> list[Violation]:
    """Check an order, except the parts already reported in ``form_violations``."""
    violations: list[Violation] = []
    for index, requested in enumerate(data.get("transactions", ())[:VIOLATIONS_MAX]):
        violations += _check_transaction(
            f"transactions[{index}]", requested, data, form_violations, settings, terms
        )
    if "payment_methods" in data and not _has_violation("payment_methods", form_violations):
        violations += _check_allow_list(data["payment_methods"], data, form_violations, settings)
    return violations


def _has_violation(path: str, violations: Sequence[Violation]) -> bool:
    return any(violation.path.startswith(path) for violation in violations)


def _check_transaction(
    path: str,
    requested: Mapping[str, Any],
    data: Mapping[str, Any],
    form_violations: Sequence[Violation],
    settings: Settings,
    terms: Terms,
) -> list[Violation]:
    name = requested.get("payment_method")
    if name is None:
        return []  # reported by the form
    unavailable = unavailable_reason(settings, name)
    if unavailable is not None:
        allowed = _usable_methods(data, form_violations, settings, available_methods(settings))
        violation = Violation(f"{path}.payment_method", unavailable.reason, allowed, rule=unavailable.rule)
        return [_suggest_name(violation, name, settings)]
    method = METHODS_BY_NAME[settings.method(name) or ""]
    violations = [
        Violation(key, f"is required for {name}", rule=_rule_of_missing(method, key))
        for key in _missing_keys(method, data)
        if not _has_violation(key, form_violations)
    ]
    if settings.personal_data == "required" and method.capabilities.screens:
        violations += _check_personal_data(name, data, form_violations)
    if "capture_mode" in requested and not method.capabilities.authorizes:
        problem = f"{name} has no authorization: it is paid at once"
        violations.append(Violation(f"{path}.capture_mode", problem, rule="CAP-01"))
    draft = AttemptDraft(
        path, data.get("amount"), requested.get("payment_method_details", {}), requested.get("capture_mode")
    )
    violations += [
        violation
        for violation in method.check(draft, terms)
        if not _has_violation(violation.path, form_violations)
    ]
    return violations


def _check_personal_data(
    name: str, data: Mapping[str, Any], form_violations: Sequence[Violation]
) -> Iterator[Violation]:
    for path in missing_personal_data(data.get("customer")):
        if not _has_violation(path, form_violations):
            problem = f"is required for {name} (MissingInformationToCreateTransaction)"
            yield Violation(path, problem, rule="CUS-14")


def _rule_of_missing(method: Method, key: str) -> str:
    return dict(method.capabilities.requirement_rules).get(key, REQUIRED_KEY_RULE)


def _rule_of_unusable(names: Sequence[str], data: Mapping[str, Any], settings: Settings) -> str:
    """Return the rule of what the first method lacks, if it is available."""
    name = settings.method(names[0]) if names and unavailable_reason(settings, names[0]) is None else None
    missing = _missing_keys(METHODS_BY_NAME[name], data) if name is not None else []
    return _rule_of_missing(METHODS_BY_NAME[name], missing[0]) if name and missing else NO_USABLE_METHOD_RULE


def _missing_keys(method: Method, data: Mapping[str, Any]) -> list[str]:
    needs = method.capabilities
    return [
        key
        for key, needed in (("order_lines", needs.needs_order_lines), ("customer", needs.needs_customer))
        if needed and not data.get(key)
    ]


def _check_allow_list(
    names: Sequence[str], data: Mapping[str, Any], violations: Sequence[Violation], settings: Settings
) -> list[Violation]:
    wrong = ((index, name) for index, name in enumerate(names) if settings.method(name) is None)
    unknown = list(islice(wrong, VIOLATIONS_MAX))
    if not unknown and _usable_methods(data, violations, settings, list(dict.fromkeys(names))):
        return []
    usable = _usable_methods(data, violations, settings, available_methods(settings))
    if not unknown:
        problem = "none of these methods can pay this order"
        return [Violation("payment_methods", problem, usable, rule=_rule_of_unusable(names, data, settings))]
    problems = {
        index: f"{name[:QUOTED_WORD_LENGTH_MAX]!r} is not a payment method" for index, name in unknown
    }
    return [
        _suggest_name(Violation(f"payment_methods[{index}]", problems[index], usable), name, settings)
        for index, name in unknown
    ]


def _suggest_name(violation: Violation, name: str, settings: Settings) -> Violation:
    """Suggest the closest method in the violation for an unknown name."""
    if settings.method(name) is not None:
        return violation
    nearest = nearest_word(name[:QUOTED_WORD_LENGTH_MAX], violation.allowed or ())
    return violation._replace(message=f"{violation.message}{did_you_mean(nearest)}", nearest=nearest)


def _usable_methods(
    data: Mapping[str, Any], violations: Sequence[Violation], settings: Settings, names: Sequence[str]
) -> list[str]:
    """List the usable methods for this order."""
    return [
        name
        for name in names
        if is_usable(
            settings,
            name,
            has_lines=bool(data.get("order_lines")) or _has_violation("order_lines", violations),
            has_customer=bool(data.get("customer")) or _has_violation("customer", violations),
            has_personal_data=not missing_personal_data(data.get("customer"))
            or _has_violation("customer", violations),
        )
    ]
