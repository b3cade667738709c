"""Each field accepts valid values and describes the expected value when it refuses one."""

import pytest

from payment_sandbox.forms import Form, PeriodText, load


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
