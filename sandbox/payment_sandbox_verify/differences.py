"""Derives the settings for a project that behaves like the verified service."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox_verify.answer import ServiceAnswer, anonymize, value_at
from payment_sandbox_verify.samples import CARD, CUSTOMER
from payment_sandbox_verify.service import ORDERS_PATH
from payment_sandbox_verify.shapes import is_order

EXPLAIN_HEADER: Final = "Sandbox-Explain"
VALIDATION_ERROR: Final = "ValidationError"
REFUSED_STATUSES: Final = range(400, 500)
UNAUTHORIZED: Final = 401  # sent before the project is known, so no project setting changes it
REDUCED_CUSTOMER_FIELDS: Final = {"country", "ip_address"}
DETAILS_PATH: Final = "transactions[0].payment_method_details."

Observer = Callable[[Sequence[ServiceAnswer]], Any]


def observed_settings(answers: Sequence[ServiceAnswer]) -> dict[str, Any]:
    """Return the settings that answers reveal; unknown settings are omitted."""
    values = {name: observe(answers) for name, observe in OBSERVERS.items()}
    return {name: value for name, value in values.items() if value is not None}


def differing_settings(
    theirs: Sequence[ServiceAnswer],
    ours: Sequence[ServiceAnswer],
    refusals: Sequence[ServiceAnswer],
    our_refusals: Sequence[ServiceAnswer],
) -> dict[str, Any]:
    """Return the settings in which a service differs from a sandbox with default settings."""
    defaults = observed_settings(ours)
    settings = {
        name: value for name, value in observed_settings(theirs).items() if defaults.get(name) != value
    }
    errors = _error_settings(list(_refusal_pairs(refusals, our_refusals)))
    return {**settings, **({"errors": errors} if errors else {})}


def _orders(answers: Iterable[ServiceAnswer]) -> Iterator[ServiceAnswer]:
    return (answer for answer in answers if answer.is_success and is_order(answer))


def _absolute_urls(answers: Sequence[ServiceAnswer]) -> bool | None:
    values = [
        address
        for order in _orders(answers)
        for address in (order.at("order_url"), order.at("transactions[0].payment_url"))
        if isinstance(address, str)
    ]
    return any("://" in address for address in values) if values else None


def _reduced_customer(answers: Sequence[ServiceAnswer]) -> bool | None:
    values = [
        set(order.at("customer"))
        for order in _orders(answers)
        if isinstance(order.request_body, dict)
        and order.request_body.get("customer") == CUSTOMER
        and isinstance(order.at("customer"), dict)
    ]
    return all(names <= REDUCED_CUSTOMER_FIELDS for names in values) if values else None


def _authorized_status(answers: Sequence[ServiceAnswer]) -> str | None:
    for order in _orders(answers):
        is_card = order.at("transactions[0].payment_method") == CARD
        is_held = order.at("transactions[0].is_capturable") is True
        if is_card and is_held and order.at("status") in ("completed", "accepted"):
            return str(order.at("status"))
    return None


def _refund_status(answers: Sequence[ServiceAnswer]) -> str | None:
    for answer in answers:
        if answer.path.endswith("/refunds/") and answer.is_success:
            status = answer.at("status")
            return str(status) if status in ("completed", "processing") else None
    return None


def _unknown_fields(answers: Sequence[ServiceAnswer]) -> str | None:
    for answer in answers:
        if isinstance(answer.request_body, dict) and "amuont" in answer.request_body:
            return "reject" if answer.status in REFUSED_STATUSES else "drop"
    return None


def _payment_methods(answers: Sequence[ServiceAnswer]) -> list[str] | None:
    for answer in answers:
        methods = answer.at("payment_methods")
        if answer.path.endswith("/currencies/") and isinstance(methods, dict):
            return [name for name in METHOD_NAMES if name in methods] or None
    return None


def _observe_detail(name: str, value: str) -> Observer:
    """Return an observer: whether card payments with a detail are accepted, or None if none was sent."""

    def observe(answers: Sequence[ServiceAnswer]) -> bool | None:
        for answer in answers:
            if answer.path == ORDERS_PATH and value_at(answer.request_body, f"{DETAILS_PATH}{name}") == value:
                return answer.is_success
        return None

    return observe


OBSERVERS: Final[Mapping[str, Observer]] = {
    "payment_methods": _payment_methods,
    "one_click_enabled": _observe_detail("one_click_type", "first"),
    "recurring_enabled": _observe_detail("recurring_type", "first"),
    "dynamic_descriptor_enabled": _observe_detail("dynamic_descriptor", "PROBE"),
    "absolute_urls": _absolute_urls,
    "reduced_customer": _reduced_customer,
    "authorized_status": _authorized_status,
    "refund_status": _refund_status,
    "unknown_fields": _unknown_fields,
}


# Refusals


def _refusal_pairs(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer]
) -> Iterator[tuple[ServiceAnswer, ServiceAnswer]]:
    """Yield both services' refusals of the same call, in pairs."""
    known = {answer.call_key: answer for answer in ours if answer.status in REFUSED_STATUSES}
    for answer in theirs:
        if not answer.path.startswith("/v1/"):
            continue  # no setting changes answers outside the API
        matches = known.get(answer.call_key)
        is_usable = answer.status in REFUSED_STATUSES and UNAUTHORIZED not in (
            answer.status,
            matches and matches.status,
        )
        if matches is not None and is_usable:
            yield answer, matches


def _error_settings(pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]]) -> dict[str, dict[str, Any]]:
    """Return the setting ``errors``: the values common to each error type, and each rule's deviations."""
    errors: dict[str, dict[str, Any]] = {}
    for kind, group in _group_pairs(pairs, lambda ours: str(ours.at("error.type"))).items():
        common = _common_values(group)
        errors[kind] = common
        if kind == VALIDATION_ERROR:
            rules = _group_pairs(group, lambda ours: ours.headers.get(EXPLAIN_HEADER, "").partition(" ")[0])
            errors |= {rule: _deviations(of_rule, common) for rule, of_rule in rules.items() if rule}
    return {name: error for name, error in errors.items() if error}


def _group_pairs(
    pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]], name: Callable[[ServiceAnswer], str]
) -> dict[str, list[tuple[ServiceAnswer, ServiceAnswer]]]:
    groups: dict[str, list[tuple[ServiceAnswer, ServiceAnswer]]] = {}
    for pair in pairs:
        groups.setdefault(name(pair[1]), []).append(pair)
    return groups


def _deviations(
    pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]], common: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: value for name, value in _common_values(pairs).items() if common.get(name) != value}


def _common_values(pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]]) -> dict[str, Any]:
    """Return the values that all refusals by the service share, if the sandbox's refusals differ."""
    common = {}
    for name, path in (("status", ""), ("type", "error.type"), ("value", "error.value")):
        theirs = {repr(_value_of(answer, path)): _value_of(answer, path) for answer, _ in pairs}
        ours = {repr(_value_of(answer, path)) for _, answer in pairs}
        value = next(iter(theirs.values()))
        is_plain = isinstance(value, int) or (isinstance(value, str) and anonymize(value) == value)
        if len(theirs) == 1 and set(theirs) != ours and is_plain:
            common[name] = value
    return common


def _value_of(answer: ServiceAnswer, path: str) -> Any:
    return answer.at(path) if path else answer.status
