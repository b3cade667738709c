"""The documented shapes of control API responses; tests check every response against them."""

from typing import Final

from marshmallow import Schema, fields

from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.web.answers.shapes import always, listed
from payment_sandbox.web.answers.tables import moment, number, text


class HealthShape(Schema):
    """The server is ready."""

    status = always(text(enum=["ok"]))
    version = always(text())


class ClockShape(Schema):
    """A project's clock."""

    now = always(moment())
    mode = always(text(enum=[RUNNING, FROZEN]))
    rate = always(fields.Float(metadata={"description": "Sandbox seconds per real second."}))


class UnderWayShape(Schema):
    """A webhook without a response yet."""

    delivery_id = always(text())
    order_id = always(text())
    url = always(text())


class MovedClockShape(ClockShape):
    """A project's clock, and whether a limit stopped it early."""

    stopped = fields.Boolean(metadata={"enum": [True]})
    under_way = fields.List(fields.Nested(UnderWayShape))


class ProjectShape(Schema):
    """A project, without its API key."""

    project_id = always(text())
    merchant_id = always(text())
    settings = always(fields.Nested(SettingsForm))
    clock = always(fields.Nested(ClockShape))
    scenario = always(text("The name of the active scenario."))


class NewProjectShape(ProjectShape):
    """A new project with its API key, which no later response contains."""

    api_key = always(text())


class DeletedShape(Schema):
    """A deleted project."""

    deleted = always(text("Its project_id."))


class OfferShape(Schema):
    """An attempt that a listener should make."""

    id = always(text("To report the answer with; the same attempt keeps it when the server restarts."))
    webhook = always(text("The same for all attempts of a webhook."))
    number = always(number())
    at = always(moment("Sandbox time."))
    by_hand = always(fields.Boolean(metadata={"description": "Whether somebody asked for it once more."}))
    order_id = always(text())
    url = always(text())
    headers = always(fields.Dict(keys=fields.String(), values=fields.String()))
    body = always(text())


class OffersShape(Schema):
    """The attempts that a listener should make now."""

    items = always(fields.List(fields.Nested(OfferShape)))
    replaced = always(
        fields.Boolean(metadata={"description": "Whether another listener has taken over; stop then."})
    )


class RecordedShape(Schema):
    """Whether an answer counts."""

    recorded = always(fields.Boolean())


class DueShape(Schema):
    """A scheduled event, or one that failed."""

    at = always(moment())
    kind = always(text())
    order_id = always(text())
    label = always(text())
    failed = text("Why the event failed; it is not retried.")


class HappenedShape(DueShape):
    """An event that happened during an advance."""

    delivery_id = text("For webhooks: the delivery's id.")


AdvanceShape: Final = Schema.from_dict(
    {
        "from": always(moment()),
        "to": always(moment("Where the clock is now.")),
        "events": always(fields.List(fields.Nested(HappenedShape))),
        "stopped": fields.Boolean(metadata={"enum": [True], "description": "By a limit; advance again."}),
        "under_way": fields.List(fields.Nested(UnderWayShape), metadata={"description": "If there are any."}),
    },
    name="AdvanceShape",
)


class ScenarioSummaryShape(Schema):
    """A scenario that can be chosen by name."""

    name = always(text())
    description = always(text())


JsonSchemaShape: Final = Schema.from_dict(
    {
        "$schema": always(text()),
        "title": always(text()),
        "description": text(),
        "type": always(text()),
        "properties": always(fields.Dict()),
        "required": fields.List(fields.String()),
        "additionalProperties": fields.Boolean(),
        "$defs": always(fields.Dict()),
    },
    name="JsonSchemaShape",
)


class WaitedShape(Schema):
    """The conditions that now hold."""

    status = text(enum=[status.value for status in OrderStatus])
    webhook_answers = fields.List(fields.Integer())
    idle = fields.Boolean()


class RuleShape(Schema):
    """A rule of the fidelity ledger."""

    id = always(text())
    section = always(text())
    source = always(text(enum=["spec", "inferred", "choice"]))
    shown_by = always(text(enum=["call", "page"]))
    text = always(fields.String())
    tests = always(fields.List(fields.String()))


class AssumptionShape(Schema):
    """A decision on something the specification leaves open, and its reason."""

    id = always(text())
    source = always(text(enum=["inferred", "choice"]))
    text = always(fields.String())
    reason = always(fields.String())


class SnapshotShape(Schema):
    """A project's whole state; restore it unchanged."""

    format = always(text())
    now = always(moment())
    clock_mode = always(text(enum=[RUNNING, FROZEN]))
    clock_rate = always(fields.Float())
    settings = always(fields.Dict())
    scenario = always(fields.Dict())
    rule_uses = always(fields.List(fields.Raw()))
    scenario_faults = always(fields.List(fields.Dict()))
    faults = always(fields.Dict())
    fault_uses = always(fields.List(fields.Dict()))
    seed = always(number())
    id_series = always(number())
    id_counts = always(fields.Dict(values=fields.Integer()))
    epoch = always(number())
    sequence = always(number())
    agenda = always(fields.List(fields.Dict()))
    orders = always(fields.List(fields.Dict()))
    credentials = always(fields.List(fields.Dict()))
    qr_requests = always(fields.List(fields.Dict()))
    deliveries = always(fields.List(fields.Dict()))
    deliveries_dropped = always(number())
    swapped = always(fields.List(fields.String()))


ProjectsShape: Final = listed("Projects", ProjectShape)
AgendaShape: Final = listed("Agenda", DueShape)
ScenariosShape: Final = listed("Scenarios", ScenarioSummaryShape)
FidelityShape: Final = listed(
    "Fidelity", RuleShape, assumptions=always(fields.List(fields.Nested(AssumptionShape)))
)
