"""The documented shapes of orders in lists and overviews, of deeds, and of the timeline."""

from typing import Any, Final

from marshmallow import Schema, fields

from payment_sandbox.operations.coverage.met import METHOD, REFUSAL, RULE, WEBHOOK
from payment_sandbox.operations.history import KINDS, PARTIES
from payment_sandbox.operations.review import KINDS as FINDING_KINDS
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.cards import ONE_CLICK, RECURRING
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.journal import MERCHANT, VIAS
from payment_sandbox.web.answers.control_shapes import DueShape
from payment_sandbox.web.answers.history_shapes import DecisionShape, DeliveryShape
from payment_sandbox.web.answers.order import ORDER
from payment_sandbox.web.answers.shapes import always, listed
from payment_sandbox.web.answers.tables import moment, number, text


def maybe(about: str = "") -> Any:
    """A text that can be null."""
    return always(fields.String(allow_none=True, metadata={"description": about} if about else {}))


class WebhookSummaryShape(Schema):
    """How the webhooks of an order stand."""

    pending = always(number())
    delivered = always(number())
    failed = always(number())
    attempts = always(number())


class OrderRowShape(Schema):
    """The few facts of an order that a list shows."""

    id = always(text())
    merchant_order_id = maybe()
    description = maybe()
    status = always(text(enum=[status.value for status in OrderStatus]))
    amount = always(number("Cents."))
    currency = always(text())
    payment_method = maybe("Of the newest attempt.")
    customer = maybe("Their e-mail address.")
    created = always(moment())
    modified = always(moment())
    flags = always(fields.List(text()))
    webhooks = always(fields.Nested(WebhookSummaryShape))


class MerchantActionShape(Schema):
    """Something that the merchant could do now."""

    action = always(text(enum=["capture", "void", "refund", "cancel"]))
    amount_max = always(fields.Integer(allow_none=True, metadata={"description": "Cents."}))


ActionsShape: Final = Schema.from_dict(
    {
        **{actor: always(fields.List(text(enum=list(names)))) for actor, names in ACTIONS.items()},
        "merchant": always(fields.List(fields.Nested(MerchantActionShape))),
    },
    name="ActionsShape",
)


class DecidedShape(DecisionShape):
    """What a scenario decided for one attempt of an order."""

    transaction_id = always(text())


class RefundRowShape(OrderRowShape):
    """A refund of an order, with the actions possible on it."""

    actions = always(fields.Nested(ActionsShape))


class OrderOverviewShape(Schema):
    """Everything about one order."""

    order = always(fields.Nested(ORDER.shape))
    actions = always(fields.Nested(ActionsShape))
    decisions = always(fields.List(fields.Nested(DecidedShape)))
    agenda = always(fields.List(fields.Nested(DueShape)))
    webhooks = always(fields.List(fields.Nested(DeliveryShape)))
    refunds = always(fields.List(fields.Nested(RefundRowShape)))
    pages = always(fields.List(text("The address of a payment page.")))


class DeedShape(Schema):
    """What a customer, bank, screening or processor did."""

    id = always(text())
    at = always(moment("Sandbox time."))
    real_at = always(moment())
    actor = always(text(enum=[*ACTIONS, MERCHANT]))
    action = always(text())
    via = always(text(enum=list(VIAS)))
    order_id = maybe()
    transaction_id = maybe()
    how = always(fields.Dict(metadata={"description": "Further fields of the action."}))


HappeningShape: Final = Schema.from_dict(
    {
        "id": always(text()),
        "at": always(moment("Sandbox time.")),
        "real_at": always(moment()),
        "from": always(text(enum=list(PARTIES))),
        "to": always(text(enum=list(PARTIES))),
        "kind": always(text(enum=list(KINDS))),
        "label": always(text()),
        "status": always(
            fields.Raw(
                allow_none=True, metadata={"description": "An HTTP status, or the status of an order."}
            )
        ),
        "cause": maybe("The id of an earlier entry."),
        "order_id": maybe(),
        "failed": always(fields.Boolean()),
        "rule": maybe("The rule that refused a request."),
        "detail": maybe(),
    },
    name="HappeningShape",
)


class FindingShape(Schema):
    """A mistake of an integration."""

    rule = always(text("The rule behind it."))
    problem = always(text("What happened."))
    advice = always(text("What to do."))
    order_id = maybe()
    requests = always(fields.List(text("A request or webhook that shows it.")))
    kind = always(text("A mistake of the integration, or a hint about its test.", enum=list(FINDING_KINDS)))
    risk = always(text("What the mistake costs in money or goods; empty for hints."))
    page = always(text("Where the documentation shows wrong and right code; empty for hints."))


class UsedRuleShape(Schema):
    """A rule of a scenario, and how often it has decided an attempt since the scenario was activated."""

    rule = always(number("Its index."))
    when = always(fields.Dict())
    then = always(fields.Dict())
    times = always(fields.Integer(allow_none=True))
    uses = always(number())


class ScenarioDetailShape(Schema):
    """A scenario with its rules."""

    name = always(text())
    description = always(text())
    is_active = always(fields.Boolean())
    settings = always(fields.Dict())
    rules = always(fields.List(fields.Nested(UsedRuleShape)))
    webhooks = always(fields.List(fields.Dict()))
    faults = always(fields.List(fields.Dict()))


class StoredCardShape(Schema):
    """A stored card, without its number."""

    vault_token = always(text())
    use = always(text(enum=[ONE_CLICK, RECURRING]))
    first_transaction_id = always(text())
    amount = always(number("Cents of the first payment; a recurring series keeps this amount."))
    stored_at = always(moment())
    brand = always(text())
    card = always(fields.Dict())


class QrRowShape(Schema):
    """A bank QR request."""

    id = always(text())
    created = always(moment())
    expires_at = always(moment())
    amount = always(fields.Integer(allow_none=True, metadata={"description": "Cents."}))
    amount_changeable = always(fields.Boolean())
    one_off = always(fields.Boolean())
    scans = always(number())
    description = maybe()
    merchant_order_id = maybe()
    page = always(text("The address that the code contains."))


class CoverageCellShape(Schema):
    """One thing that can happen, and where it did."""

    what = always(text("Such as paid, retried, CAP-08, or rule 1 of a scenario."))
    met_by = always(
        fields.List(
            text(), metadata={"description": "Ids of orders, or of refused requests; the first hundred."}
        )
    )
    count = always(number("How many there are; 0 if it never happened."))


class CoverageRowShape(Schema):
    """What can happen with a payment method, to webhooks, in refusals, or by scenario rules."""

    group = always(text(enum=[METHOD, WEBHOOK, REFUSAL, RULE]))
    name = always(text("The payment method, or the name of the group."))
    cells = always(fields.List(fields.Nested(CoverageCellShape)))


OrdersShape: Final = listed("Orders", OrderRowShape)
DeedsShape: Final = listed("Deeds", DeedShape)
TimelineShape: Final = listed("Timeline", HappeningShape)
ReviewShape: Final = listed("Review", FindingShape)
CoverageShape: Final = listed(
    "Coverage",
    CoverageRowShape,
    percent=always(fields.Float(metadata={"description": "How much of the ends of the methods was met."})),
    is_chosen=always(
        fields.Boolean(
            metadata={"description": "Whether payment_methods is set; if not, the methods are those used."}
        )
    ),
)
StoredCardsShape: Final = listed("StoredCards", StoredCardShape)
QrRequestsShape: Final = listed("QrRequests", QrRowShape)
