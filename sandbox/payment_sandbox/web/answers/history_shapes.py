"""The documented shapes of what happened: webhooks, and the journal with its lists."""

from typing import Final

from marshmallow import Schema, fields

from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.web.answers.shapes import always, listed
from payment_sandbox.web.answers.tables import moment, number, text


class SentShape(Schema):
    """What an attempt sent."""

    headers = always(fields.Dict(keys=fields.String(), values=fields.String()))
    body = always(text())


class AnsweredShape(Schema):
    """The merchant's response."""

    status = always(number())
    body = text("The first 4 KiB at most; not in a summary.")


class AttemptShape(Schema):
    """One attempt to deliver a webhook."""

    number = always(number())
    at = always(moment("Sandbox time."))
    real_at = always(moment())
    request = fields.Nested(SentShape, metadata={"description": "Not in a summary."})
    response = always(fields.Nested(AnsweredShape, allow_none=True))
    error = always(fields.String(allow_none=True, metadata={"description": "Why there was no response."}))
    warning = always(fields.String(allow_none=True))
    traceback = fields.String(
        allow_none=True,
        metadata={"description": "Of an exception in a handler that runs in this process; not in a summary."},
    )
    duration_ms = always(fields.Float())


class DeliveryShape(Schema):
    """A webhook with all its attempts."""

    id = always(text())
    order_id = always(text())
    url = always(text())
    state = always(text(enum=[state.value for state in DeliveryState]))
    status = always(text("The status of the order that it tells about."))
    attempts = always(fields.List(fields.Nested(AttemptShape)))


class DifferenceShape(Schema):
    """A condition of a rule that an attempt does not meet."""

    condition = always(text())
    expected = always(fields.Raw(allow_none=True))
    actual = always(fields.Raw(allow_none=True))


class NearestShape(Schema):
    """The rule that came closest to matching."""

    rule = always(number())
    differs = always(fields.List(fields.Nested(DifferenceShape)))


class DecisionShape(Schema):
    """What a scenario decided for an attempt."""

    scenario = always(text())
    rule = always(fields.Integer(allow_none=True, metadata={"description": "The matching rule's index."}))
    nearest = fields.Nested(NearestShape, allow_none=True)


class HeadersShape(Schema):
    """The headers of a request and of its response, without those that hold keys."""

    request = always(fields.Dict(keys=fields.String(), values=fields.String()))
    response = always(fields.Dict(keys=fields.String(), values=fields.String()))


class EntryShape(Schema):
    """A request to the merchant API, and its response; a summary has no bodies, headers and decision."""

    id = always(text())
    at = always(moment("Sandbox time."))
    real_at = always(fields.String(allow_none=True, metadata={"format": "date-time"}))
    method = always(text())
    path = always(text())
    query = always(text())
    status = always(fields.Integer(allow_none=True))
    request = fields.Raw(allow_none=True, metadata={"description": "The body."})
    response = fields.Raw(allow_none=True, metadata={"description": "The body."})
    headers = fields.Nested(HeadersShape)
    ignored = always(fields.List(text("The path of an ignored key.")))
    rule = always(fields.String(allow_none=True, metadata={"description": "The rule that refused it."}))
    fault = always(fields.Dict(allow_none=True))
    decision = fields.Nested(DecisionShape, allow_none=True)
    order_id = always(fields.String(allow_none=True))


class ReturnShape(Schema):
    """A customer's return to the shop."""

    order_id = always(text())
    at = always(moment())
    real_at = always(moment())


class StatusShape(Schema):
    """A status that an order or one of its attempts has reached."""

    id = always(text())
    transaction_id = always(fields.String(allow_none=True))
    cause = always(
        fields.String(allow_none=True, metadata={"description": "The id of the request or deed behind it."})
    )
    order_id = always(text())
    payment_method = always(
        fields.String(allow_none=True, metadata={"description": "The method, for an attempt."})
    )
    status = always(text())
    at = always(moment())
    real_at = always(moment())


class FailureShape(Schema):
    """A scheduled event that failed."""

    id = always(text())
    order_id = always(text())
    kind = always(text())
    label = always(text())
    error = always(text())
    at = always(moment())
    real_at = always(moment())


WebhooksShape: Final = listed("Webhooks", DeliveryShape)
JournalShape: Final = Schema.from_dict(
    {
        "items": fields.List(fields.Nested(EntryShape)),
        "dropped": number("How many older entries were dropped to make room."),
        "returns": fields.List(fields.Nested(ReturnShape)),
        "statuses": fields.List(fields.Nested(StatusShape)),
        "failures": fields.List(fields.Nested(FailureShape)),
        "count": number("With ?count=1: the number of entries, instead of the list."),
    },
    name="JournalShape",
)
