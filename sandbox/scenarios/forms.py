"""How a scenario document is written; the forms check it and give the model."""

from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from sandbox.forms import Cents, Choice, Flag, Form, Items, Part, PeriodText, Text, Whole
from sandbox.forms.base import Problem
from sandbox.forms.fields import Anything, OneOrMany, Seconds, Yes
from sandbox.kernel.periods import Period, PeriodError
from sandbox.orders.amounts import AMOUNT_CENTS_MAX
from sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, NETWORKS
from sandbox.orders.deliveries import DELIVERIES_MAX
from sandbox.orders.statuses import OrderStatus
from sandbox.scenarios.model import ACTORS

OUTCOMES = ("passed", "declined", "error")
EFFECTS = ("status", "hang", "reset", "truncate", "rate_limit")
PHASED = frozenset({"status", "hang", "reset"})
RULES_MAX = 1000


class AmountForm(Form):
    """Bounds for an amount, in cents."""

    gte = Cents(low=0)
    gt = Cents(low=0)
    lte = Cents(low=0)
    lt = Cents(low=0)


class AmountField(Part):
    """Bounds, or one number that stands for exactly that amount."""

    instead: ClassVar[dict[str, Any]] = {"type": "integer", "minimum": 0, "maximum": AMOUNT_CENTS_MAX}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = {"gte": value, "lte": value}
        return super()._deserialize(value, *context, **options)


class WhenForm(Form):
    """Conditions of a rule; all must hold."""

    payment_method = OneOrMany(Text())
    amount = AmountField(AmountForm)
    customer = Anything(keys=Text(), values=Text())
    merchant_order_id = Text()
    attempt = Whole(low=1)
    refund = Flag()


class CreditField(Part):
    """The bank's credit, or the word never."""

    instead: ClassVar[dict[str, Any]] = {"const": "never"}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        return value if value == "never" else super()._deserialize(value, *context, **options)


class CreditForm(Form):
    """When the bank credits how much."""

    after = PeriodText(zero=True)
    amount = Cents()


class ThenForm(Form):
    """What happens to an attempt."""

    also_required: ClassVar[dict[str, Any]] = {"anyOf": [{"required": [actor]} for actor in ACTORS]}

    customer = Choice(("waits", "pays", "fails", "cancels", "abandons"))
    after = PeriodText(zero=True)
    reason = Text()
    card = Choice((*CARDS, *(network for network in NETWORKS if network not in CARDS)))
    authorization = Choice(AUTHORIZATION_METHODS)
    credit = CreditField(CreditForm)
    screening = Choice((*OUTCOMES, "needs-time"))
    then = Choice(OUTCOMES)
    processor = Choice(("settles", "fails"))

    @validates_schema(skip_on_field_errors=True)
    def says_something(self, data: dict[str, Any], **options: Any) -> None:
        """An outcome needs an actor."""
        if not any(actor in data for actor in ACTORS):
            raise ValidationError(Problem(f"must name one of: {', '.join(ACTORS)}", ACTORS))


class RuleForm(Form):
    """One rule."""

    when = Part(WhenForm, load_default=dict)
    times = Whole(low=1)
    then = Part(ThenForm, required=True)


class WebhookWhenForm(Form):
    """Which attempts of which deliveries."""

    status = Choice([status.value for status in OrderStatus])
    attempt = Whole(low=1, high=DELIVERIES_MAX)


class WebhookThenForm(Form):
    """How a delivery fares instead of going to the merchant, or besides."""

    also_required: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    answer = Whole(low=100, high=599)
    timeout = Yes()
    drop = Yes()
    duplicate = Whole(low=2, high=10)
    delay = PeriodText()
    swap = Yes()

    @validates_schema(skip_on_field_errors=True)
    def one_thing(self, data: dict[str, Any], **options: Any) -> None:
        """One effect per rule."""
        if len(data) != 1:
            known = list(self.load_fields)
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(known)}", known))


class WebhookRuleForm(Form):
    """One rule for webhooks."""

    when = Part(WebhookWhenForm, load_default=dict)
    then = Part(WebhookThenForm, required=True)


class FaultWhenForm(Form):
    """Which requests."""

    method = Choice(("GET", "POST", "PUT", "DELETE"))
    path = Text(pattern="/.*", expected="a path such as /v1/orders/ (* stands for anything)")
    nth = OneOrMany(Whole(low=1))


class FaultThenForm(Form):
    """What goes wrong."""

    also_required: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [effect]} for effect in (*EFFECTS, "latency")]
    }

    status = Whole(low=400, high=599)
    phase = Choice(("before", "after"))
    latency = Seconds()
    hang = Seconds()
    reset = Yes()
    truncate = Yes()
    rate_limit = Text(pattern=r"[1-9]\d{0,5}/P.+", expected="requests per period, such as 10/PT1S")

    @validates_schema(skip_on_field_errors=True)
    def one_thing(self, data: dict[str, Any], **options: Any) -> None:
        """One effect per rule; a latency may stand beside it."""
        if sum(bool(data.get(effect)) for effect in EFFECTS) > 1 or not data.keys() - {"phase"}:
            known = ("latency", *EFFECTS)
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(known)}", known))
        if "phase" in data and not data.keys() & PHASED:
            raise ValidationError(f"goes with one of: {', '.join(sorted(PHASED))}", "phase")
        if "rate_limit" in data:
            _refuse_no_period(data["rate_limit"])


def _refuse_no_period(rate_limit: str) -> None:
    try:
        Period.parse(rate_limit.partition("/")[2])
    except PeriodError as error:
        raise ValidationError(
            f"must be requests per period, such as 10/PT1S: {error}", "rate_limit"
        ) from None


class FaultForm(Form):
    """One fault."""

    when = Part(FaultWhenForm, load_default=dict)
    then = Part(FaultThenForm, required=True)


class FaultsForm(Form):
    """Faults and webhook rules without a scenario around them."""

    faults = Items(Part(FaultForm))
    webhooks = Items(Part(WebhookRuleForm))


class ScenarioForm(Form):
    """A whole scenario."""

    name = Text(
        required=True, pattern="[a-z0-9][a-z0-9-]{0,63}", expected="small letters, digits and hyphens"
    )
    description = Text()
    settings = Anything(keys=Text())
    rules = Items(Part(RuleForm), most=RULES_MAX)
    webhooks = Items(Part(WebhookRuleForm))
    faults = Items(Part(FaultForm))
