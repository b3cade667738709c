"""What tests may send to the control API."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validate, validates_schema

from payment_sandbox.forms import Cents, Choice, Form, Moment, PeriodText, Problem, Text, Whole
from payment_sandbox.forms.fields import Number
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS
from payment_sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING


class ActForm(Form):
    """Who does what."""

    actor = Choice(tuple(ACTIONS), required=True, about="Who acts.")
    action = Text(
        required=True,
        about="What he does: "
        + "; ".join(f"{actor}: {', '.join(actions)}" for actor, actions in ACTIONS.items())
        + ".",
    )
    payment_method = Text(about="For choose: the method.")
    issuer_id = Text(about="For bank-redirect-nl: the bank.")
    card = Choice(tuple(CARDS), about="For a card payment: the test card.")
    authorization = Choice(AUTHORIZATION_METHODS, about="For wallet-google: how it authorizes.")
    amount = Cents(about="For a bank's credit: how much, in cents; all that is missing by default.")
    reason = Text(about="Why it fails or is declined.")

    @validates_schema(skip_on_field_errors=True)
    def actor_can(self, data: Mapping[str, Any], **options: Any) -> None:
        """Each actor has actions of its own."""
        actions = ACTIONS[data["actor"]]
        if data["action"] not in actions:
            message = f"must be one of: {', '.join(actions)}, for the actor {data['actor']}"
            raise ValidationError(Problem(message, actions), "action")


class ScanForm(Form):
    """What a payer enters after the scan."""

    amount = Cents(about="What the payer enters, where he may, in cents.")
    issuer_id = Text(about="The bank that he chooses.")


class ClockForm(Form):
    """How a clock goes on."""

    mode = Choice((RUNNING, FROZEN), about="Whether it runs by itself.")
    rate = Number(
        validate=validate.Range(0, RATE_MAX, min_inclusive=False, error="must be above 0, at most 1000000"),
        about="Sandbox seconds per real second, for a running clock.",
    )
    now = Moment(about="The time that it shall be; forward only.")

    @validates_schema(skip_on_field_errors=True)
    def something(self, data: Mapping[str, Any], **options: Any) -> None:
        """An empty change is a mistake, and a rate needs a running clock."""
        if not data:
            known = list(self.load_fields)
            raise ValidationError(Problem(f"must hold one of: {', '.join(known)}", known))
        if "rate" in data and data.get("mode") == FROZEN:
            raise ValidationError("is only possible with mode running", "rate")


class AdvanceForm(Form):
    """How far a clock goes."""

    by = PeriodText(zero=True, about="How far.")
    to = Moment(about="Up to when.")
    until = Choice(("next", "idle"), about="Up to the next event, or until nothing is due any more.")
    max_events = Whole(low=1, high=10_000_000, about="It stops after so many events; 10000 by default.")
    timeout = Number(
        validate=validate.Range(0, 600, min_inclusive=False, error="must be above 0, at most 600 seconds"),
        about="It stops after so many real seconds; 60 by default.",
    )

    @validates_schema(skip_on_field_errors=True)
    def one_aim(self, data: Mapping[str, Any], **options: Any) -> None:
        """Exactly one aim."""
        aims = ("by", "to", "until")
        if sum(aim in data for aim in aims) != 1:
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(aims)}", aims))
