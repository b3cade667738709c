"""The merchant API's records that have no table: currencies and errors."""

from typing import Annotated, NotRequired, TypedDict

from payment_sandbox.orders.refusals import Violation
from payment_sandbox.web.answers.kinds import Json


class MethodCurrencies(TypedDict):
    """The currencies of a method."""

    currencies: list[str]


class Currencies(TypedDict):
    """The enabled methods and their currencies."""

    payment_methods: dict[str, MethodCurrencies]


class Error(TypedDict):
    """The details of an error."""

    status: int
    type: str
    value: Annotated[str, "A message that names the field or rule."]
    violations: list[Violation]
    allowed: NotRequired[list[Annotated[str, "An allowed value or action."]]]
    now: NotRequired[Annotated[Json, "The current state, after a wait that timed out."]]


class ErrorAnswer(TypedDict):
    """The body of every 4xx and 5xx response."""

    error: Error
