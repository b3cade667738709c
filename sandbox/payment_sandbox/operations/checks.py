"""Checks whether a well-formed order is payable: an available method, and the method's fields."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final

from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.methods import BY_NAME
from payment_sandbox.methods.common import AttemptDraft, Method, Terms
from payment_sandbox.operations.attempts import available, is_usable, unavailable_reason
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, WORD_LENGTH_MAX, Violation
from payment_sandbox.projects.settings import Settings

NEEDS: Final = {"order_lines": "ORD-16", "customer": "INV-02"}


def check_order(
    data: Mapping[str, Any], in_form: Sequence[Violation], settings: Settings, terms: Terms
) -> list[Violation]:
    """Check an order, except the parts with violations ``in_form``."""
    violations: list[Violation] = []
    for index, requested in enumerate(data.get("transactions", ())[:VIOLATIONS_MAX]):
        violations += _check_transaction(f"transactions[{index}]", requested, data, in_form, settings, terms)
    if "payment_methods" in data and not _is_wrong("payment_methods", in_form):
        violations += _check_allow_list(data["payment_methods"], data, in_form, settings)
    return violations


def _is_wrong(path: str, violations: Sequence[Violation]) -> bool:
    return any(violation.path.startswith(path) for violation in violations)


def _check_transaction(
    path: str,
    requested: Mapping[str, Any],
    data: Mapping[str, Any],
    in_form: Sequence[Violation],
    settings: Settings,
    terms: Terms,
) -> list[Violation]:
    name = requested.get("payment_method")
    if name is None:
        return []  # reported by the form
    unavailable = unavailable_reason(settings, name)
    if unavailable is not None:
        allowed = _usable(data, in_form, settings, available(settings))
        violation = Violation(f"{path}.payment_method", unavailable.why, allowed, rule=unavailable.rule)
        return [_suggest_name(violation, name, settings)]
    method = BY_NAME[settings.method(name) or ""]
    violations = [
        Violation(key, f"is required for {name}", rule=NEEDS[key])
        for key in _missing_keys(method, data)
        if not _is_wrong(key, in_form)
    ]
    if "capture_mode" in requested and not method.capabilities.authorizes:
        problem = f"{name} has no authorization, it is paid at once"
        violations.append(Violation(f"{path}.capture_mode", problem, rule="CAP-01"))
    draft = AttemptDraft(
        path, data.get("amount"), requested.get("payment_method_details", {}), requested.get("capture_mode")
    )
    violations += [
        violation for violation in method.check(draft, terms) if not _is_wrong(violation.path, in_form)
    ]
    return violations


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
    if not unknown and _usable(data, violations, settings, list(dict.fromkeys(names))):
        return []
    usable = _usable(data, violations, settings, available(settings))
    if not unknown:
        problem = "none of these methods can pay this order"
        return [Violation("payment_methods", problem, usable, rule="GEN-04")]
    problems = {index: f"{name[:WORD_LENGTH_MAX]!r} is not a payment method" for index, name in unknown}
    return [
        _suggest_name(Violation(f"payment_methods[{index}]", problems[index], usable), name, settings)
        for index, name in unknown
    ]


def _suggest_name(violation: Violation, name: str, settings: Settings) -> Violation:
    """Suggest the closest method in the violation of an unknown name."""
    if settings.method(name) is not None:
        return violation
    nearest = nearest_word(name[:WORD_LENGTH_MAX], violation.allowed or ())
    return violation._replace(message=f"{violation.message}{did_you_mean(nearest)}", nearest=nearest)


def _usable(
    data: Mapping[str, Any], violations: Sequence[Violation], settings: Settings, names: Sequence[str]
) -> list[str]:
    """List the usable methods for this order."""
    return [
        name
        for name in names
        if is_usable(
            settings,
            name,
            has_lines=bool(data.get("order_lines")) or _is_wrong("order_lines", violations),
            has_customer=bool(data.get("customer")) or _is_wrong("customer", violations),
        )
    ]
