"""How a scenario document is written; the forms check it and give the model."""

from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from payment_sandbox.forms import Cents, Choice, Flag, Form, Items, Part, PeriodText, Text, Whole
from payment_sandbox.forms.base import Problem
from payment_sandbox.forms.fields import Anything, OneOrMany, Seconds, Yes
from payment_sandbox.kernel.periods import Period, PeriodError
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, NETWORKS
from payment_sandbox.orders.deliveries import DELIVERIES_MAX
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.scenarios.model import ACTORS

OUTCOMES = ("passed", "declined", "error")
EFFECTS = ("status", "hang", "reset", "truncate", "rate_limit")
PHASED = frozenset({"status", "hang", "reset"})
RULES_MAX = 1000


class AmountForm(Form):
    """Bounds for an amount, in cents."""

    gte = Cents(low=0, about="At least.")
    gt = Cents(low=0, about="More than.")
    lte = Cents(low=0, about="At most.")
    lt = Cents(low=0, about="Less than.")


class AmountField(Part):
    """Bounds, or one number that stands for exactly that amount."""

    instead: ClassVar[dict[str, Any]] = {"type": "integer", "minimum": 0, "maximum": AMOUNT_CENTS_MAX}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = {"gte": value, "lte": value}
        return super()._deserialize(value, *context, **options)


class WhenForm(Form):
    """Conditions of a rule; all must hold."""

    payment_method = OneOrMany(Text(), about="One method or several, by identifier or alias.")
    amount = AmountField(AmountForm, about="The amount in cents: one number, or bounds.")
    customer = Anything(
        keys=Text(), values=Text(), about="Customer fields and the glob that each must match (* is anything)."
    )
    merchant_order_id = Text(about="A glob for the merchant's own order id.")
    attempt = Whole(low=1, about="The number of the attempt on its order, from 1.")
    refund = Flag(about="True: the rule is about refunds, and about nothing else.")


class CreditField(Part):
    """The bank's credit, or the word never."""

    instead: ClassVar[dict[str, Any]] = {"const": "never"}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        return value if value == "never" else super()._deserialize(value, *context, **options)


class CreditForm(Form):
    """When the bank credits how much."""

    after = PeriodText(zero=True, about="How long after creation; at once by default.")
    amount = Cents(about="How much, in cents; all of it by default.")


class ThenForm(Form):
    """What happens to an attempt."""

    also_required: ClassVar[dict[str, Any]] = {"anyOf": [{"required": [actor]} for actor in ACTORS]}

    customer = Choice(
        ("waits", "pays", "fails", "cancels", "abandons"),
        about="What the customer does on the page; waits leaves it to a browser or a control call.",
    )
    after = PeriodText(zero=True, about="How long it takes; at once by default.")
    reason = Text(about="Why it fails, as the transaction's reason tells the customer.")
    card = Choice(
        (*CARDS, *(network for network in NETWORKS if network not in CARDS)),
        about="The test card, or for wallet-google the network.",
    )
    authorization = Choice(AUTHORIZATION_METHODS, about="How wallet-google authorizes.")
    credit = CreditField(CreditForm, about="When the bank credits how much of a bank-transfer, or never.")
    screening = Choice((*OUTCOMES, "needs-time"), about="What the screening answers on creation.")
    then = Choice(OUTCOMES, about="What a screening that needs time answers in the end.")
    processor = Choice(("settles", "fails"), about="How a one-click or recurring payment or a refund ends.")

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def says_something(self, data: dict[str, Any], original: dict[str, Any], **options: Any) -> None:
        """An outcome needs an actor."""
        if isinstance(original, dict) and not any(actor in original for actor in ACTORS):
            raise ValidationError(Problem(f"must name one of: {', '.join(ACTORS)}", ACTORS))


class RuleForm(Form):
    """One rule."""

    when = Part(WhenForm, load_default=dict, about="Conditions that must all hold; any attempt without.")
    times = Whole(low=1, about="How often it decides before it is spent; for ever without.")
    then = Part(ThenForm, required=True, about="What happens to the attempt.")


class WebhookWhenForm(Form):
    """Which attempts of which deliveries."""

    status = Choice(
        [status.value for status in OrderStatus], about="The order's status that the webhook is about."
    )
    attempt = Whole(low=1, high=DELIVERIES_MAX, about="The number of the delivery's attempt, from 1.")


class WebhookThenForm(Form):
    """How a delivery fares instead of going to the merchant, or besides."""

    also_required: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    answer = Whole(
        low=100, high=599, about="Counts as answered with this status; the merchant is not called."
    )
    timeout = Yes(about="Fails at once, as if the merchant had not answered in time; he is not called.")
    drop = Yes(about="Is lost on its way: counts as delivered, and the merchant is not called.")
    duplicate = Whole(low=2, high=10, about="Comes so many times.")
    delay = PeriodText(about="Comes this much later.")
    swap = Yes(about="Comes after the next one of the project.")

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def one_thing(self, data: dict[str, Any], original: dict[str, Any], **options: Any) -> None:
        """One effect per rule."""
        if isinstance(original, dict) and len(original.keys() & self.load_fields.keys()) != 1:
            known = list(self.load_fields)
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(known)}", known))


class WebhookRuleForm(Form):
    """One rule for webhooks."""

    when = Part(WebhookWhenForm, load_default=dict, about="Which attempts; each of them without.")
    then = Part(WebhookThenForm, required=True, about="Exactly one effect.")


class FaultWhenForm(Form):
    """Which requests."""

    method = Choice(("GET", "POST", "PUT", "DELETE"), about="The HTTP method.")
    path = Text(
        pattern="/.*",
        expected="a path such as /v1/orders/ (* stands for anything)",
        about="A glob for the path; the final slash does not matter.",
    )
    nth = OneOrMany(Whole(low=1), about="Which of the matching requests, from 1; each of them without.")


class FaultThenForm(Form):
    """What goes wrong."""

    also_required: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [effect]} for effect in (*EFFECTS, "latency")]
    }

    status = Whole(low=400, high=599, about="The answer is this error.")
    phase = Choice(
        ("before", "after"), about="Before: nothing is done. After: all is done, and the answer is lost."
    )
    latency = Seconds(about="The answer comes this many real seconds later; may stand beside another effect.")
    hang = Seconds(about="Nothing comes for this many real seconds, then the connection ends.")
    reset = Yes(about="The connection is cut off without an answer.")
    truncate = Yes(about="The answer ends in its middle.")
    rate_limit = Text(
        pattern=r"[1-9]\d{0,5}/P.+",
        expected="requests per period, such as 10/PT1S",
        about="What is over this rate, by sandbox time, is answered 429 RateLimited.",
    )

    @validates_schema(skip_on_field_errors=False, pass_original=True)
    def one_thing(self, data: dict[str, Any], original: dict[str, Any], **options: Any) -> None:
        """One effect per rule, and perhaps a latency beside it."""
        named = set(original) & set(self.load_fields) if isinstance(original, dict) else set(data)
        if isinstance(original, dict) and (len(named & set(EFFECTS)) > 1 or not named - {"phase"}):
            known = ("latency", *EFFECTS)
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(known)}", known))
        if "phase" in named and not named & PHASED:
            raise ValidationError(f"goes with one of: {', '.join(sorted(PHASED))}", "phase")
        if "rate_limit" in data:
            _refuse_no_period(data["rate_limit"])


def _refuse_no_period(rate_limit: str) -> None:
    expected = "must be requests per period, such as 10/PT1S"
    try:
        period = Period.parse(rate_limit.partition("/")[2])
    except PeriodError as error:
        raise ValidationError(f"{expected}: {error}", "rate_limit") from None
    if period.is_zero:
        raise ValidationError(f"{expected}: this period is zero", "rate_limit")


class FaultForm(Form):
    """One fault."""

    when = Part(FaultWhenForm, load_default=dict, about="Which requests; each of them without.")
    then = Part(FaultThenForm, required=True, about="What goes wrong with them.")


class FaultsForm(Form):
    """Faults and webhook rules without a scenario around them."""

    faults = Items(Part(FaultForm), about="What goes wrong with requests.")
    webhooks = Items(Part(WebhookRuleForm), about="What goes wrong with webhooks.")


class ScenarioForm(Form):
    """A whole scenario."""

    name = Text(
        required=True,
        pattern="[a-z0-9][a-z0-9-]{0,63}",
        expected="small letters, digits and hyphens",
        about="The file's name without its ending.",
    )
    description = Text(about="What it rehearses, in a sentence.")
    settings = Anything(keys=Text(), about="Settings of the project while the scenario is active.")
    rules = Items(Part(RuleForm), most=RULES_MAX, about="The first that matches an attempt decides it.")
    webhooks = Items(
        Part(WebhookRuleForm), about="The first that matches an attempt of a delivery decides it."
    )
    faults = Items(Part(FaultForm), about="The first that matches a request decides it.")
