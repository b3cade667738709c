"""What tests may send to the control API."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validate, validates_schema

from payment_sandbox.forms import Cents, Choice, Form, Moment, PeriodText, Problem, Text, Whole
from payment_sandbox.forms.fields import Number
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS
from payment_sandbox.orders.deliveries import DeliveryState
from payment_sandbox.orders.statuses import OrderStatus
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


class WebhooksQuery(Form):
    """Which webhooks to list."""

    order_id = Text(about="Of one order only.")
    state = Choice([state.value for state in DeliveryState], about="In one state only.")


class JournalQuery(Form):
    """Which requests to list, or to count."""

    method = Text(about="With this HTTP method.")
    path = Text(about="At this path; the final slash does not matter.")
    status = Text(pattern="[0-9]{1,9}", expected="a number such as 201", about="Answered with this status.")
    order_id = Text(about="About one order.")
    count = Choice(("1",), about="Answer how many there are, and nothing else.")


class WaitQuery(Form):
    """What to wait for, and how long."""

    order_id = Text(about="Together with status: the order.")
    status = Choice([status.value for status in OrderStatus], about="The status that it should have.")
    webhook = Text(about="An order of which a webhook should have been answered.")
    idle = Choice(("1",), about="Nothing is due now, and no webhook is under way.")
    timeout = Text(
        pattern=r"[0-9]{1,3}(\.[0-9]+)?",
        expected="a number of seconds, at most 60",
        about="How long to wait, in real seconds; 10 by default, 60 at most.",
    )


class StateForm(Form):
    """A snapshot, as ``GET /control/state/`` answers it; it is checked as a whole."""
