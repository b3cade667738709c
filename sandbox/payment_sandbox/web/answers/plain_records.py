"""The types of values in records, and the records that every server needs: health, currencies and errors."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from payment_sandbox.kernel.descriptions import Moment as Moment
from payment_sandbox.orders.refusals import Violation

Strings = dict[str, str]
Json = dict[str, Any]


class Health(TypedDict):
    """The health of the server."""

    status: Literal["ok"]
    version: str


class MethodCurrencies(TypedDict):
    """The currencies of a method."""

    currencies: list[str]


class Currencies(TypedDict):
    """The enabled methods and their currencies."""

    payment_methods: dict[str, MethodCurrencies]


class OwnProject(TypedDict):
    """The project of the API key, with the permitted calls by path and method."""

    id: str
    name: str
    status: Literal["active-testing", "active"]
    permissions: dict[str, dict[str, bool]]


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
