"""Answers that are no records: errors, lists, and small objects."""

from typing import Any, Final

from marshmallow import Schema, fields

from payment_sandbox.web.answers.tables import number, text


def always(field: Any) -> Any:
    """A field that every answer has."""
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
    """One thing wrong with a request."""

    path = always(text())
    message = always(text())
    allowed = fields.List(text())
    nearest = text("The known word that was perhaps meant.")
    file = text()
    line = number()
    column = number()


class ErrorShape(Schema):
    """What is wrong."""

    status = always(number())
    type = always(text())
    value = always(text("A sentence that names the field or rule."))
    violations = always(fields.List(fields.Nested(ViolationShape)))
    allowed = fields.List(text("What is possible instead."))
    now = fields.Dict(metadata={"description": "What is true instead of what was waited for."})


class ErrorAnswerShape(Schema):
    """Every 4xx and 5xx."""

    error = always(fields.Nested(ErrorShape))


def listed(name: str, item: type[Schema], **more: Any) -> type[Schema]:
    """The shape of a list in the control API."""
    described: dict[str, Any] = {
        "items": always(fields.List(fields.Nested(item))),
        "dropped": always(number("How many older ones made room.")),
        **more,
    }
    return type(
        f"{name}Shape", (Schema,), {"__doc__": f"A list: {item.__doc__}", "__module__": __name__, **described}
    )


class StateVersionShape(Schema):
    """How often an order has changed, for a page that waits."""

    state = always(number())


class OpenApiShape(Schema):
    """This description."""

    openapi = always(text())
    info = always(fields.Dict())
    paths = always(fields.Dict())
    components = always(fields.Dict())
    servers = always(fields.List(fields.Dict()))


LIST_KEYS: Final = ("items", "dropped")
