"""Forms of the control API and the dashboard: actions, deliveries, and clock advances."""

from collections.abc import Mapping
from typing import Any, Final

from marshmallow import ValidationError, validate

from payment_sandbox.forms import (
    Cents,
    Choice,
    Form,
    PeriodText,
    Problem,
    Text,
    WebUrl,
    checks,
)
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.cards import AUTHORIZATION_METHODS, CARDS


class UnsentForm(Form):
    """The address for all unsent webhooks."""

    webhook_url = WebUrl(required=True, about="The address of the shop.")


BODY_LENGTH_MAX: Final = 16_384


class ResendForm(Form):
    """Overrides for a manual resend, and its delay."""

    url = WebUrl(about="Another address; the state of the webhook stays.")
    body = Text(
        validate=validate.Length(max=BODY_LENGTH_MAX, error="must have at most {max} characters"),
        about="Another body; the state of the webhook stays.",
    )
    after = PeriodText(about="Resend after this period of sandbox time, such as PT10M.")


class ActForm(Form):
    """An action and its actor."""

    actor = Choice(tuple(ACTIONS), required=True, about="The acting party.")
    action = Text(
        required=True,
        about="The action, by actor: "
        + "; ".join(f"{actor}: {', '.join(actions)}" for actor, actions in ACTIONS.items())
        + ".",
    )
    payment_method = Text(about="For choose: the payment method.")
    issuer_id = Text(about="For bank-redirect-nl: the bank.")
    card = Choice(tuple(CARDS), about="For a card payment: the test card.")
    authorization = Choice(AUTHORIZATION_METHODS, about="For wallet-google: the authorization method.")
    amount = Cents(
        about="For the bank's credit action: cents; by default the missing amount, or the whole amount again."
    )
    transaction_id = Text(
        about="The transaction; by default the newest or, for the bank, the newest that can receive money."
    )
    reason = Text(about="The reason for a failure or decline.")

    @checks(although_invalid=False)
    def check_action_of_actor(self, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
        """Refuse an action that the actor cannot perform."""
        actions = ACTIONS[data["actor"]]
        if data["action"] not in actions:
            nearest = nearest_word(data["action"], actions)
            expected = f"must be one of: {', '.join(actions)}, for the actor {data['actor']}"
            raise ValidationError(Problem(f"{expected}{did_you_mean(nearest)}", actions, nearest), "action")
