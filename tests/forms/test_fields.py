"""Each field accepts valid values and describes the expected value when it refuses one."""

from typing import Any

import pytest

from payment_sandbox.forms import Cents, Form, FormPart, Items, PeriodText, Text, load
from payment_sandbox.orders.refusals import VIOLATIONS_MAX


class LineForm(Form):
    """A nested form."""

    name = Text(required=True)
    amount = Cents()


class PausingForm(Form):
    """A form with a limit and a pause."""

    period = PeriodText()
    pause = PeriodText(zero=True)


def test_a_duration_of_zero_is_refused_unless_the_field_allows_it() -> None:
    """A time limit of zero is refused; a pause of zero is accepted."""
    _, (violation,) = load(PausingForm(), {"period": "PT0S", "pause": "PT0S"})
    assert (violation.path, violation.message) == ("period", "must be longer than zero; got 'PT0S'")


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("30m0s", "must be an ISO 8601 duration such as PT30M or P7D; got '30m0s'; did you mean 'PT30M'?"),
        (1800, "must be an ISO 8601 duration such as PT30M or P7D; got 1800; did you mean 'PT30M'?"),
        (True, "must be a string; got true"),
        (
            "P0Y0M0DT0H0M0S",
            "must be longer than zero; date-fns drops weeks, so {weeks: 1} becomes zero; got ",
        ),
    ],
)
def test_a_duration_of_another_library_is_recognized(period: object, message: str) -> None:
    """The refusal names the duration that was meant, or why it became zero."""
    _, (violation,) = load(PausingForm(), {"period": period})
    assert violation.message.startswith(message)


def test_the_number_of_violations_is_limited() -> None:
    """Reading of a list stops at its hundredth invalid item."""

    class ManyForm(Form):
        lines = Items(FormPart(LineForm))

    wrong: dict[str, Any] = {"lines": [{}] * (VIOLATIONS_MAX + 5)}
    assert len(load(ManyForm(), wrong)[1]) == VIOLATIONS_MAX
    mixed: dict[str, Any] = {
        "lines": [{}] * (VIOLATIONS_MAX - 1) + [{"name": "a", "amount": 1}] * 9 + [{}] * 5
    }
    assert load(ManyForm(), mixed)[1][-1].path.startswith(f"lines[{VIOLATIONS_MAX + 8}]")


def test_the_length_of_a_list_is_reported_first() -> None:
    """The violation about the length comes before those of the items."""

    class ShortForm(Form):
        lines = Items(FormPart(LineForm), most=3)

    (first, *others) = load(ShortForm(), {"lines": [{}] * 500})[1]
    assert (first.path, first.message) == ("lines", "must have at most 3 item(s), but has 500")
    assert others[0].path.startswith("lines[0]")
