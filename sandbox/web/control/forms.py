"""What tests may send to the control API."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validate, validates_schema

from sandbox.forms import Cents, Choice, Form, Moment, PeriodText, Problem, Text, Whole
from sandbox.forms.fields import Number
from sandbox.orders.actions import ACTIONS
from sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS
from sandbox.projects.clock import FROZEN, RATE_MAX, RUNNING


class ActForm(Form):
    """Who does what."""

    actor = Choice(tuple(ACTIONS), required=True)
    action = Text(required=True)
    payment_method = Text()
    issuer_id = Text()
    card = Choice(tuple(CARDS))
    authorization = Choice(AUTHORIZATION_METHODS)
    amount = Cents()
    reason = Text()

    @validates_schema(skip_on_field_errors=True)
    def actor_can(self, data: Mapping[str, Any], **options: Any) -> None:
        """Each actor has actions of its own."""
        actions = ACTIONS[data["actor"]]
        if data["action"] not in actions:
            message = f"must be one of: {', '.join(actions)}, for the actor {data['actor']}"
            raise ValidationError(Problem(message, actions), "action")


class ScanForm(Form):
    """What a payer enters after the scan."""

    amount = Cents()
    issuer_id = Text()


class ClockForm(Form):
    """How a clock goes on."""

    mode = Choice((RUNNING, FROZEN))
    rate = Number(
        validate=validate.Range(0, RATE_MAX, min_inclusive=False, error="must be above 0, at most 1000000")
    )
    now = Moment()

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

    by = PeriodText(zero=True)
    to = Moment()
    until = Choice(("next", "idle"))
    max_events = Whole(low=1, high=10_000_000)

    @validates_schema(skip_on_field_errors=True)
    def one_aim(self, data: Mapping[str, Any], **options: Any) -> None:
        """Exactly one aim."""
        aims = ("by", "to", "until")
        if sum(aim in data for aim in aims) != 1:
            raise ValidationError(Problem(f"must hold exactly one of: {', '.join(aims)}", aims))
