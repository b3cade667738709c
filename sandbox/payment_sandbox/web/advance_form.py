"""The form of an advance of the clock, for the control API and the dashboard."""

from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, validate

from payment_sandbox.forms import Choice, Form, Moment, PeriodText, Problem, Whole, checks
from payment_sandbox.forms.fields import Number


class AdvanceForm(Form):
    """How far to advance the clock."""

    by = PeriodText(zero=True, about="Advance by this duration.")
    to = Moment(about="Advance to this time.")
    until = Choice(("next", "idle"), about="Advance to the next event, or until nothing is due any more.")
    max_events = Whole(low=1, high=10_000_000, about="Stop after this many events; 10000 by default.")
    timeout = Number(
        validate=validate.Range(0, 600, min_inclusive=False, error="must be above 0, at most 600 seconds"),
        about="Stop after this many real seconds; 60 by default.",
    )

    @checks(although_invalid=False)
    def one_aim(self, data: Mapping[str, Any], **options: Any) -> None:
        """Require exactly one target."""
        aims = ("by", "to", "until")
        if sum(aim in data for aim in aims) != 1:
            raise ValidationError(Problem(f"must contain exactly one of: {', '.join(aims)}", aims))
