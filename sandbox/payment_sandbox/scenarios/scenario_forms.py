"""The forms that validate a scenario document."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from marshmallow import ValidationError

from payment_sandbox.forms import Cents, Choice, Flag, Form, FormPart, Items, PeriodText, Text, Whole
from payment_sandbox.forms.base import Problem, checks
from payment_sandbox.forms.fields import Anything, Label, OneOrMany, Seconds
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS, NETWORKS
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import ATTEMPTS_MAX
from payment_sandbox.scenarios.effects import (
    PHASE_AFTER,
    PHASE_BEFORE,
    REQUEST_EFFECTS,
    WEBHOOK_EFFECTS,
    Effect,
)
from payment_sandbox.scenarios.model import ACTOR_KEYS

SCREENING_RESULTS = ("passed", "declined", "error")
RULES_MAX = 1000


def _effect_keys(effects: Sequence[type[Effect]]) -> list[str]:
    return [effect.key for effect in effects]


def _create_effect_form(
    name: str, about: str, base: type[Form], effects: Sequence[type[Effect]]
) -> type[Form]:
    return type(name, (base,), {"__doc__": about, **{each.key: each.field for each in effects}})


class AmountForm(Form):
    """Bounds for an amount, in cents."""

    gte = Cents(low=0, about="At least this many cents.")
    gt = Cents(low=0, about="More than this many cents.")
    lte = Cents(low=0, about="At most this many cents.")
    lt = Cents(low=0, about="Less than this many cents.")


class AmountField(FormPart):
    """Bounds, or one number for exactly that amount."""

    alternative_schema: ClassVar[dict[str, Any]] = {
        "type": "integer",
        "minimum": 0,
        "maximum": AMOUNT_CENTS_MAX,
    }

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        if isinstance(value, int) and not isinstance(value, bool):
            value = {"gte": value, "lte": value}
        return super()._deserialize(value, *context, **options)


class WhenForm(Form):
    """Conditions of a rule, which must all be true."""

    payment_method = OneOrMany(Text(), about="One method or several, by identifier or alias.")
    amount = AmountField(AmountForm, about="The amount in cents: one number, or bounds.")
    customer = Anything(
        keys=Text(), values=Text(), about="Customer fields and the glob that each must match (* is anything)."
    )
    merchant_order_id = Text(about="A glob for the merchant_order_id.")
    attempt = Whole(low=1, about="The number of the attempt within its order, from 1.")
    refund = Flag(about="True: the rule applies to refunds only.")


class CreditField(FormPart):
    """The bank's credit, or ``never``."""

    alternative_schema: ClassVar[dict[str, Any]] = {"const": "never"}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        return value if value == "never" else super()._deserialize(value, *context, **options)


class CreditForm(Form):
    """The time and the amount of the bank's credit."""

    after = PeriodText(zero=True, about="The delay after creation; none by default.")
    amount = Cents(about="The amount in cents; the full amount by default.")


class ThenForm(Form):
    """The outcome of an attempt."""

    also_required: ClassVar[dict[str, Any]] = {"anyOf": [{"required": [actor]} for actor in ACTOR_KEYS]}

    customer = Choice(
        ("waits", "pays", "fails", "cancels", "abandons"),
        about="The customer's action on the page; waits leaves it to a browser or a control call.",
    )
    after = PeriodText(zero=True, about="The delay before the action or result; none by default.")
    reason = Text(about="The reason for a failure, shown on the transaction.")
    card = Choice(
        (*CARDS, *(network for network in NETWORKS if network not in CARDS)),
        about="The test card, or for wallet-google the network.",
    )
    authorization = Choice(AUTHORIZATION_METHODS, about="The authorization method of wallet-google.")
    credit = CreditField(CreditForm, about="The bank's credit for a bank-transfer, or never.")
    screening = Choice((*SCREENING_RESULTS, "needs-time"), about="The result of the screening on creation.")
    then = Choice(SCREENING_RESULTS, about="The final result of a long screening.")
    processor = Choice(
        ("settles", "fails"), about="The result of a one-click or recurring payment or a refund."
    )

    @checks(although_invalid=True)
    def require_actor(self, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
        """Require an actor in an outcome."""
        if isinstance(sent, dict) and not any(actor in sent for actor in ACTOR_KEYS):
            raise ValidationError(Problem(f"must contain one of: {', '.join(ACTOR_KEYS)}", ACTOR_KEYS))


def _matches() -> Whole:
    return Whole(low=0, about="In answers: how often the rule has matched. Ignored in requests.")


class RuleForm(Form):
    """A rule for attempts."""

    matches = _matches()
    when = FormPart(
        WhenForm, load_default=dict, about="Conditions that must all be true; default: any attempt."
    )
    times = Whole(low=1, about="The maximum number of matches; unlimited by default.")
    then = FormPart(ThenForm, required=True, about="The outcome of the attempt.")


class WebhookWhenForm(Form):
    """The delivery attempts matched by a rule."""

    status = Choice(
        [status.value for status in OrderStatus], about="The order status that the webhook reports."
    )
    attempt = Whole(low=1, high=ATTEMPTS_MAX, about="The number of the delivery attempt, from 1.")


class OneEffectForm(Form):
    """Exactly one effect."""

    also_required: ClassVar[dict[str, Any]] = {"minProperties": 1, "maxProperties": 1}

    @checks(although_invalid=True)
    def require_one_effect(self, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
        """Require one effect per rule."""
        if isinstance(sent, dict) and len(sent.keys() & self.load_fields.keys()) != 1:
            known = list(self.load_fields)
            raise ValidationError(Problem(f"must contain exactly one of: {', '.join(known)}", known))


WebhookThenForm: Final = _create_effect_form(
    "WebhookThenForm", "The effect on a delivery attempt.", OneEffectForm, WEBHOOK_EFFECTS
)


class WebhookRuleForm(Form):
    """A rule for webhooks."""

    matches = _matches()
    when = FormPart(
        WebhookWhenForm, load_default=dict, about="The delivery attempts that match; all by default."
    )
    then = FormPart(WebhookThenForm, required=True, about="Exactly one effect.")


class OrderWebhookWhenForm(WebhookWhenForm):
    """The delivery attempts matched by a rule outside a scenario."""

    order_id = Text(
        about="An order or refund of the project. The rule is removed once the order has ended, no money is "
        "reserved, and all webhooks are answered."
    )


class OrderWebhookRuleForm(WebhookRuleForm):
    """A rule for webhooks outside a scenario; unlike scenario rules, it can name an order."""

    when = FormPart(
        OrderWebhookWhenForm, load_default=dict, about="The delivery attempts that match; all by default."
    )


class FaultWhenForm(Form):
    """The requests matched by a fault."""

    method = Choice(("GET", "POST", "PUT", "DELETE"), about="The HTTP method.")
    path = Text(
        pattern="/.*",
        expected="a path such as /v1/orders/ (* matches anything)",
        about="A glob for the path; a trailing slash makes no difference.",
    )
    nth = OneOrMany(Whole(low=1), about="The numbers of the matching requests, from 1; all by default.")


class LatencyForm(Form):
    """An effect, a latency, or both."""

    also_required: ClassVar[dict[str, Any]] = {
        "anyOf": [{"required": [key]} for key in (*_effect_keys(REQUEST_EFFECTS), "latency")]
    }

    phase = Choice(
        (PHASE_BEFORE, PHASE_AFTER),
        about="before: the request is not processed; after: only the response is lost.",
    )
    latency = Seconds(about="Delays the response by this many real seconds; allows a second effect.")

    @checks(although_invalid=True)
    def require_one_effect(self, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
        """Require one effect per rule, a latency, or both."""
        effects = _effect_keys(REQUEST_EFFECTS)
        named = set(sent) & set(self.load_fields) if isinstance(sent, dict) else set(data)
        if isinstance(sent, dict) and (len(named & set(effects)) > 1 or not named - {"phase"}):
            known = ("latency", *effects)
            raise ValidationError(Problem(f"must contain exactly one of: {', '.join(known)}", known))
        phased = _effect_keys([effect for effect in REQUEST_EFFECTS if effect.has_phase])
        if "phase" in named and not named & set(phased):
            raise ValidationError(f"is only allowed with one of: {', '.join(sorted(phased))}", "phase")


FaultThenForm: Final = _create_effect_form(
    "FaultThenForm", "The effect on a request.", LatencyForm, REQUEST_EFFECTS
)


class FaultForm(Form):
    """A fault of requests."""

    matches = _matches()
    when = FormPart(FaultWhenForm, load_default=dict, about="The requests that match; all by default.")
    then = FormPart(FaultThenForm, required=True, about="The effect on these requests.")


class FaultsForm(Form):
    """Faults and webhook rules outside a scenario."""

    faults = Items(FormPart(FaultForm), most=RULES_MAX, wrong_max=RULES_MAX, about="Faults of requests.")
    webhooks = Items(
        FormPart(OrderWebhookRuleForm), most=RULES_MAX, wrong_max=RULES_MAX, about="Effects on webhooks."
    )


class ScenarioForm(Form):
    """A whole scenario."""

    name = Text(
        required=True,
        pattern="[a-z0-9][a-z0-9-]{0,63}",
        expected="lower-case letters, digits and hyphens",
        about="The file name without its extension.",
    )
    description = Label(about="The purpose of the scenario, in one sentence.")
    settings = Anything(keys=Text(), about="Project settings while the scenario is active.")
    rules = Items(
        FormPart(RuleForm), most=RULES_MAX, wrong_max=RULES_MAX, about="The first matching rule applies."
    )
    webhooks = Items(
        FormPart(WebhookRuleForm),
        most=RULES_MAX,
        wrong_max=RULES_MAX,
        about="The first matching rule decides a delivery attempt.",
    )
    faults = Items(
        FormPart(FaultForm),
        most=RULES_MAX,
        wrong_max=RULES_MAX,
        about="The first matching fault applies to a request.",
    )
