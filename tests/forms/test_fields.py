"""Each field accepts valid values and describes the expected value when it refuses one."""

from typing import Any

from payment_sandbox.forms import Cents, Choice, Flag, Form, FormPart, Items, PeriodText, Text, Whole, load
from payment_sandbox.forms.base import unknown_keys
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Violation


class LineForm(Form):
    """A nested form."""

    name = Text(required=True)
    amount = Cents()


class SampleForm(Form):
    """A form with a field of each tested kind."""

    whole = Whole(1, 9)
    cents = Cents()
    flag = Flag()
    period = PeriodText()
    pause = PeriodText(zero=True)
    word = Choice(["after", "before"])
    lines = Items(FormPart(LineForm), least=1, most=3)


def load_messages(data: Any, **options: Any) -> dict[str, str]:
    """Load the data and return the messages of violations by path."""
    _, violations = load(SampleForm(), data, **options)
    return {violation.path: violation.message for violation in violations}


def test_bounds_of_whole_numbers_are_in_the_message() -> None:
    """The message names both bounds, whichever was violated."""
    for value in (0, 10):
        expected = f"must be at least 1 and at most 9; got {value}"
        assert load_messages({"whole": value}) == {"whole": expected}
    assert load_messages({"whole": 1}) == load_messages({"whole": 9}) == {}


def test_a_duration_of_zero_is_refused_unless_the_field_allows_it() -> None:
    """A time limit of zero is refused; a pause of zero is accepted."""
    assert load_messages({"period": "PT0S", "pause": "PT0S"}) == {
        "period": "must be longer than zero; got 'PT0S'"
    }


def test_a_misspelled_word_gets_a_suggestion() -> None:
    """The violation lists all allowed words and suggests the nearest."""
    _, (violation,) = load(SampleForm(), {"word": "befor"})
    assert violation == Violation(
        "word",
        "must be one of: after, before; got 'befor'; did you mean 'before'?",
        ["after", "before"],
        "before",
    )


def test_violations_at_every_depth_are_reported_together() -> None:
    """All violations are reported with their paths, and valid fields are still read."""
    data = {"whole": "1", "flag": True, "lines": [{"amount": 1.5}, {"name": "Hat", "amount": 5}, {"name": 7}]}
    read, violations = load(SampleForm(), data)
    assert [violation.path for violation in violations] == [
        "whole",
        "lines[0].name",
        "lines[0].amount",
        "lines[2].name",
    ]
    assert read["flag"] is True


def test_a_wrong_length_is_reported_with_invalid_items() -> None:
    """A list that is too long is reported together with its invalid items."""
    assert load_messages({"lines": [{"name": "a"}, {}, {"name": "b"}, {"name": "c"}]}) == {
        "lines[1].name": "is required",
        "lines": "must have at least 1 and at most 3 item(s), but has 4",
    }


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


def test_unknown_keys_are_found_at_every_depth() -> None:
    """Each unknown key comes with the most similar known key."""
    data = {"flagg": True, "lines": [{"name": "a"}, {"name": "b", "ammount": 5}]}
    unknown = [key.violation() for key in unknown_keys(SampleForm(), data)]
    assert [(violation.path, violation.nearest) for violation in unknown] == [
        ("flagg", "flag"),
        ("lines[1].ammount", "amount"),
    ]


def test_the_length_of_a_list_is_reported_first() -> None:
    """The violation about the length comes before those of the items."""

    class ShortForm(Form):
        lines = Items(FormPart(LineForm), most=3)

    (first, *others) = load(ShortForm(), {"lines": [{}] * 500})[1]
    assert (first.path, first.message) == ("lines", "must have at most 3 item(s), but has 500")
    assert others[0].path.startswith("lines[0]")
