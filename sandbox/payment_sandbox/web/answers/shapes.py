"""Shapes that are not records: errors, lists and small objects."""

from typing import Any

from marshmallow import Schema, fields

from payment_sandbox.web.answers.tables import number, text


def always(field: Any) -> Any:
    """Mark a field as present in every response."""
    field.required = True
    return field


class IssuerShape(Schema):
    """A bank."""

    id = always(text("The bank's BIC."))
    list_type = always(text())
    name = always(text())


class MethodCurrenciesShape(Schema):
    """The currencies of a method."""

    currencies = always(fields.List(text()))


class CurrenciesShape(Schema):
    """The enabled methods and their currencies."""

    payment_methods = always(fields.Dict(keys=fields.String(), values=fields.Nested(MethodCurrenciesShape)))


class ViolationShape(Schema):
    """One problem with a request."""

    path = always(text())
    message = always(text())
    allowed = fields.List(text())
    nearest = text("The closest known name, if the name looks misspelled.")
    file = text()
    line = number()
    column = number()


class ErrorShape(Schema):
    """An error."""

    status = always(number())
    type = always(text())
    value = always(text("A message that names the field or rule."))
    violations = always(fields.List(fields.Nested(ViolationShape)))
    allowed = fields.List(text("An allowed value or action."))
    now = fields.Dict(metadata={"description": "The current state, when a wait has timed out."})


class ErrorAnswerShape(Schema):
    """The body of every 4xx and 5xx."""

    error = always(fields.Nested(ErrorShape))


def listed(name: str, item: type[Schema], **more: Any) -> type[Schema]:
    """The shape of a list in the control API."""
    described: dict[str, Any] = {
        "items": always(fields.List(fields.Nested(item))),
        "dropped": always(number("How many older items were dropped to make room.")),
        **more,
    }
    return type(
        f"{name}Shape", (Schema,), {"__doc__": f"A list: {item.__doc__}", "__module__": __name__, **described}
    )


class StateVersionShape(Schema):
    """The order's version; it grows with every change."""

    state = always(number())


class OpenApiShape(Schema):
    """The OpenAPI description."""

    openapi = always(text())
    info = always(fields.Dict())
    paths = always(fields.Dict())
    components = always(fields.Dict())
    servers = always(fields.List(fields.Dict()))
