"""Derives the settings for a project that behaves like the verified service."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from payment_sandbox.methods import NAMES
from payment_sandbox_verify.answer import ServiceAnswer, anonymous, value_at
from payment_sandbox_verify.samples import CARD, CUSTOMER
from payment_sandbox_verify.service import ORDERS
from payment_sandbox_verify.shapes import is_order

EXPLAIN: Final = "Sandbox-Explain"
INVALID: Final = "ValidationError"
REFUSED: Final = range(400, 500)
UNAUTHORIZED: Final = 401  # belongs to no project, so no setting of one can change it
REDUCED: Final = {"country", "ip_address"}
DETAILS: Final = "transactions[0].payment_method_details."

Observed = Callable[[Sequence[ServiceAnswer]], Any]


def observed(answers: Sequence[ServiceAnswer]) -> dict[str, Any]:
    """Return the settings that answers reveal; unknown settings are omitted."""
    values = {name: observe(answers) for name, observe in OBSERVED.items()}
    return {name: value for name, value in values.items() if value is not None}


def settings_of(
    theirs: Sequence[ServiceAnswer],
    ours: Sequence[ServiceAnswer],
    refusals: Sequence[ServiceAnswer],
    our_refusals: Sequence[ServiceAnswer],
) -> dict[str, Any]:
    """Return the settings in which a service differs from a sandbox with default settings."""
    usual = observed(ours)
    settings = {name: value for name, value in observed(theirs).items() if usual.get(name) != value}
    errors = _errors(list(_pairs(refusals, our_refusals)))
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
        if isinstance(order.sent, dict)
        and order.sent.get("customer") == CUSTOMER
        and isinstance(order.at("customer"), dict)
    ]
    return all(names <= REDUCED for names in values) if values else None


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
        if isinstance(answer.sent, dict) and "amuont" in answer.sent:
            return "reject" if answer.status in REFUSED else "drop"
    return None


def _payment_methods(answers: Sequence[ServiceAnswer]) -> list[str] | None:
    for answer in answers:
        methods = answer.at("payment_methods")
        if answer.path.endswith("/currencies/") and isinstance(methods, dict):
            return [name for name in NAMES if name in methods] or None
    return None


def _takes(name: str, value: str) -> Observed:
    """Observe whether card payments with a detail are accepted; None if none was sent."""

    def look(answers: Sequence[ServiceAnswer]) -> bool | None:
        for answer in answers:
            if answer.path == ORDERS and value_at(answer.sent, f"{DETAILS}{name}") == value:
                return answer.is_success
        return None

    return look


OBSERVED: Final[Mapping[str, Observed]] = {
    "payment_methods": _payment_methods,
    "one_click_enabled": _takes("one_click_type", "first"),
    "recurring_enabled": _takes("recurring_type", "first"),
    "dynamic_descriptor_enabled": _takes("dynamic_descriptor", "PROBE"),
    "absolute_urls": _absolute_urls,
    "reduced_customer": _reduced_customer,
    "authorized_status": _authorized_status,
    "refund_status": _refund_status,
    "unknown_fields": _unknown_fields,
}


# Refusals


def _pairs(
    theirs: Sequence[ServiceAnswer], ours: Sequence[ServiceAnswer]
) -> Iterator[tuple[ServiceAnswer, ServiceAnswer]]:
    """Yield the pairs of refusals of the same call."""
    known = {answer.asked: answer for answer in ours if answer.status in REFUSED}
    for answer in theirs:
        if not answer.path.startswith("/v1/"):
            continue  # no setting changes the answers outside the API
        matches = known.get(answer.asked)
        is_usable = answer.status in REFUSED and UNAUTHORIZED not in (
            answer.status,
            matches and matches.status,
        )
        if matches is not None and is_usable:
            yield answer, matches


def _errors(pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]]) -> dict[str, dict[str, Any]]:
    """Return the setting ``errors``: the values common to a type, and the deviations of a rule."""
    errors: dict[str, dict[str, Any]] = {}
    for kind, group in _grouped(pairs, lambda ours: str(ours.at("error.type"))).items():
        shared = _shared(group)
        errors[kind] = shared
        if kind == INVALID:
            rules = _grouped(group, lambda ours: ours.headers.get(EXPLAIN, "").partition(" ")[0])
            errors |= {rule: _special(of_rule, shared) for rule, of_rule in rules.items() if rule}
    return {name: error for name, error in errors.items() if error}


def _grouped(
    pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]], name: Callable[[ServiceAnswer], str]
) -> dict[str, list[tuple[ServiceAnswer, ServiceAnswer]]]:
    groups: dict[str, list[tuple[ServiceAnswer, ServiceAnswer]]] = {}
    for pair in pairs:
        groups.setdefault(name(pair[1]), []).append(pair)
    return groups


def _special(
    pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]], shared: Mapping[str, Any]
) -> dict[str, Any]:
    return {name: value for name, value in _shared(pairs).items() if shared.get(name) != value}


def _shared(pairs: Sequence[tuple[ServiceAnswer, ServiceAnswer]]) -> dict[str, Any]:
    """Return the values common to all refusals of the service, but not of the sandbox."""
    shared = {}
    for name, place in (("status", ""), ("type", "error.type"), ("value", "error.value")):
        theirs = {repr(_part(answer, place)): _part(answer, place) for answer, _ in pairs}
        ours = {repr(_part(answer, place)) for _, answer in pairs}
        value = next(iter(theirs.values()))
        is_plain = isinstance(value, int) or (isinstance(value, str) and anonymous(value) == value)
        if len(theirs) == 1 and set(theirs) != ours and is_plain:
            shared[name] = value
    return shared


def _part(answer: ServiceAnswer, place: str) -> Any:
    return answer.at(place) if place else answer.status
