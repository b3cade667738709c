"""Each field takes what it should, and says of everything else what it expects."""

from typing import Any

import pytest

from payment_sandbox.forms import Cents, Choice, Flag, Form, FormPart, Items, PeriodText, Text, Whole, load
from payment_sandbox.forms.base import unknown_keys
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Violation


class LineForm(Form):
    """A part of a form."""

    name = Text(required=True)
    amount = Cents()


class TriedForm(Form):
    """A form with a field of each kind that is tried here."""

    whole = Whole(1, 9)
    cents = Cents()
    flag = Flag()
    period = PeriodText()
    pause = PeriodText(zero=True)
    word = Choice(["after", "before"])
    lines = Items(FormPart(LineForm), least=1, most=3)


def told(data: Any, **options: Any) -> dict[str, str]:
    """The messages, by path."""
    _, violations = load(TriedForm(), data, **options)
    return {found.path: found.message for found in violations}


@pytest.mark.parametrize("value", [12.0, 12.5, "12", True, None, [1], 1e3])
def test_only_integers_are_whole_numbers(value: Any) -> None:
    """Neither texts nor floats without a fraction, nor true."""
    assert told({"cents": value}).keys() == {"cents"}
    assert load(TriedForm(), {"cents": 12}) == ({"cents": 12}, [])


def test_bounds_of_whole_numbers_are_told() -> None:
    """Both, whichever was broken."""
    assert told({"whole": 0}) == told({"whole": 10}) == {"whole": "must be at least 1 and at most 9"}
    assert told({"whole": 1}) == told({"whole": 9}) == {}


@pytest.mark.parametrize("value", ["yes", "true", 1, 0, None])
def test_only_true_and_false_are_flags(value: Any) -> None:
    """No words, and no numbers."""
    assert told({"flag": value}).keys() == {"flag"}


@pytest.mark.parametrize("text", ["PT30M", "P1D", "P1Y2M3DT4H5M6S", "P2W"])
def test_durations_keep_their_spelling(text: str) -> None:
    """They are echoed as they were sent."""
    assert load(TriedForm(), {"period": text}) == ({"period": text}, [])


@pytest.mark.parametrize("value", ["30M", "PT", "P", "-PT5M", "PT30M ", "pt30m?", "", 60, None])
def test_what_is_no_duration_is_refused(value: Any) -> None:
    """With or without a sign, a unit, or a number."""
    assert told({"period": value}).keys() == {"period"}


def test_a_duration_of_nothing_is_refused_unless_it_means_at_once() -> None:
    """A time limit of zero would be none."""
    assert told({"period": "PT0S", "pause": "PT0S"}) == {"period": "must be longer than zero"}


def test_a_misspelled_word_is_told_with_the_nearest_one() -> None:
    """And with all that there are."""
    _, (violation,) = load(TriedForm(), {"word": "befor"})
    assert violation == Violation(
        "word", "must be one of: after, before; did you mean 'before'?", ["after", "before"], "before"
    )


def test_violations_at_every_depth_come_at_once() -> None:
    """Each with its path; what is right is read all the same."""
    data = {"whole": "1", "flag": True, "lines": [{"amount": 1.5}, {"name": "Hat", "amount": 5}, {"name": 7}]}
    read, violations = load(TriedForm(), data)
    assert [found.path for found in violations] == [
        "whole",
        "lines[0].name",
        "lines[0].amount",
        "lines[2].name",
    ]
    assert read["flag"] is True


def test_a_wrong_length_is_told_beside_wrong_items() -> None:
    """A list that is too long hides nothing."""
    assert told({"lines": [{"name": "a"}, {}, {"name": "b"}, {"name": "c"}]}) == {
        "lines[1].name": "is required",
        "lines": "must have at least 1 and at most 3 item(s), but has 4",
    }


def test_only_so_many_violations_are_told() -> None:
    """A list is not read beyond its hundredth wrong item."""

    class ManyForm(Form):
        lines = Items(FormPart(LineForm))

    wrong: dict[str, Any] = {"lines": [{}] * (VIOLATIONS_MAX + 5)}
    assert len(load(ManyForm(), wrong)[1]) == VIOLATIONS_MAX
    mixed: dict[str, Any] = {
        "lines": [{}] * (VIOLATIONS_MAX - 1) + [{"name": "a", "amount": 1}] * 9 + [{}] * 5
    }
    assert load(ManyForm(), mixed)[1][-1].path.startswith(f"lines[{VIOLATIONS_MAX + 8}]")


def test_unknown_keys_are_found_at_every_depth() -> None:
    """With the key that was perhaps meant."""
    data = {"flagg": True, "lines": [{"name": "a"}, {"name": "b", "ammount": 5}]}
    found = [key.violation() for key in unknown_keys(TriedForm(), data)]
    assert [(violation.path, violation.nearest) for violation in found] == [
        ("flagg", "flag"),
        ("lines[1].ammount", "amount"),
    ]


@pytest.mark.parametrize("data", [[], None, "EUR", 5, True])
def test_what_is_no_object_is_refused_as_such(data: Any) -> None:
    """Without a path."""
    assert told(data) == {"": "must be an object"}


def test_a_list_that_is_too_long_says_so_first() -> None:
    """Whatever else is wrong with its items."""

    class ShortForm(Form):
        lines = Items(FormPart(LineForm), most=3)

    (first, *others) = load(ShortForm(), {"lines": [{}] * 500})[1]
    assert (first.path, first.message) == ("lines", "must have at most 3 item(s), but has 500")
    assert others[0].path.startswith("lines[0]")
