"""Card numbers and CVCs are masked however they are written; what only looks like one stays."""

import json
from time import process_time

import pytest

from payment_sandbox.kernel.masking import mask

GROUPS = ("4012", "8888", "8888", "1881")
SHORT = "501800000009"  # a card with twelve digits
WIDE = "".join(chr(ord("０") + int(digit)) for digit in "".join(GROUPS))
JOINTS = (
    " ", "-", ", ", ",", " - ", "\u00a0", "\u2009", "\u202f", "\u200b", "\u2060", "\u00ad", "\u2013", "\u2212",
)  # fmt: skip


@pytest.mark.parametrize("joint", JOINTS, ids=ascii)
def test_groups_of_a_card_number_are_masked(joint: str) -> None:
    """As text, and as JSON escapes it."""
    number = joint.join(GROUPS)
    for text in (f"card {number}.", json.dumps({"a": number}), json.dumps({"a": json.dumps(number)})):
        assert "1881" not in mask(text), text


def test_what_is_escaped_beside_a_card_number_can_still_be_written() -> None:
    """Half of an emoji is no text, and a line feed would end the JSON string."""
    body = json.dumps({"a": f"{''.join(GROUPS)} \N{GRINNING FACE}\n"})
    masked = mask(body)
    assert "1881" not in masked
    assert json.loads(masked.encode()) == {"a": "0 \N{GRINNING FACE}\n"}


@pytest.mark.parametrize("number", [SHORT, WIDE], ids=ascii)
def test_other_card_numbers_are_masked(number: str) -> None:
    """With twelve digits, and with digits of full width."""
    assert number[-4:] not in mask(f"card {number}")
    escaped = json.dumps(number)
    assert mask(escaped) != escaped


@pytest.mark.parametrize(
    "text",
    ["400000000006", "501800000008", "2026-03-01T12:00:00.000000+00:00", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"],
    ids=["no card has twelve digits and a 4", "a wrong check digit", "a time", "a list"],
)
def test_what_is_no_card_number_stays(text: str) -> None:
    """Numbers of orders, times and lists."""
    assert mask(text) == text


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": 1}, "value": "123"},
        [[1], {"value": "123"}],
        {"a": [], "b": {"c": []}, "d": {"value": "123"}},
    ],
    ids=["an object in an object", "lists", "many"],
)
def test_a_cvc_is_masked_up_to_its_last_bracket(value: object) -> None:
    """And what comes after it stays."""
    text = mask(json.dumps({"cvc": value, "amount": 777}))
    assert "123" not in text
    assert '"amount": 777' in text


def test_brackets_that_never_close_take_little_time() -> None:
    """However often the name comes."""
    begun = process_time()
    assert "123" not in mask('{"cvc": [123' * 20_000)
    assert process_time() - begun < 2
