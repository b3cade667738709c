"""The records of the merchant API that are not tables: banks, currencies and errors."""

from typing import Annotated, NotRequired, TypedDict

from payment_sandbox.web.answers.kinds import Json


class Issuer(TypedDict):
    """A bank."""

    id: Annotated[str, "The bank's BIC."]
    list_type: str
    name: str


class MethodCurrencies(TypedDict):
    """The currencies of a method."""

    currencies: list[str]


class Currencies(TypedDict):
    """The enabled methods and their currencies."""

    payment_methods: dict[str, MethodCurrencies]


class Violation(TypedDict):
    """One problem with a request."""

    path: str
    message: str
    allowed: NotRequired[list[str]]
    nearest: NotRequired[Annotated[str, "The closest known name, if the name looks misspelled."]]
    file: NotRequired[str]
    line: NotRequired[int]
    column: NotRequired[int]


class Error(TypedDict):
    """An error."""

    status: int
    type: str
    value: Annotated[str, "A message that names the field or rule."]
    violations: list[Violation]
    allowed: NotRequired[list[Annotated[str, "An allowed value or action."]]]
    now: NotRequired[Annotated[Json, "The current state, when a wait has timed out."]]


class ErrorAnswer(TypedDict):
    """The body of every 4xx and 5xx."""

    error: Error
