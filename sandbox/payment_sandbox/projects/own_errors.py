"""The setting ``errors``: refusals in the status, type and words that a merchant's real account has."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from payment_sandbox.forms import Form, Text, Whole
from payment_sandbox.orders.refusals import kinds_of_refusals

TYPES: Final = (
    "BadRequest",
    "ValidationError",
    "NotFound",
    "MethodNotAllowed",
    "PreconditionFailed",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
)
"""The types of refusals of the merchant API that are no refusal of a rule."""


class OwnErrorForm(Form):
    """A refusal as the merchant's real account words it."""

    status = Whole(low=400, high=499, about="The HTTP status.")
    type = Text(about="The error's type.")
    value = Text(about="The error's sentence.")


def unknown_names(names: Iterable[str]) -> Iterator[str]:
    """The names that are neither an error type nor a rule of the ledger."""
    names = list(names)
    if not names:
        return
    from payment_sandbox.fidelity.ledger import rule_texts  # here, because most projects have no such setting

    known = {*TYPES, *rule_texts(), *(kind.__name__ for kind in kinds_of_refusals())}
    yield from (name for name in names if name not in known)


def own_error(errors: Mapping[str, Mapping[str, Any]], kind: str, rules: Iterable[str]) -> Mapping[str, Any]:
    """What replaces parts of a refusal: what is set for its type, and over it for the first of its rules."""
    of_rule = next((errors[rule] for rule in rules if rule in errors), {})
    return {**errors.get(kind, {}), **of_rule}
