"""What YAML becomes, and where each part of it stands."""

import tracemalloc
from time import process_time

import pytest

from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.scenarios.documents import TEXT_LENGTH_MAX, Position, parse_yaml

MERGED = """\
base: &base {times: 1}
rules:
  - <<: *base
  - <<: *base
    note: &yes true
same: *yes
"""


def test_what_is_merged_in_has_no_place_of_its_own() -> None:
    """Its parent's is the nearest."""
    document = parse_yaml(MERGED)
    assert document.data["rules"] == [{"times": 1}, {"note": True, "times": 1}]
    assert document.position_of("base.times") == Position(1, 14)
    assert document.position_of("rules[0].times") == Position(3, 5)
    assert document.position_of("rules[1].note") == Position(5, 5)
    assert document.position_of("rules[1].times") == Position(4, 5)


def test_true_with_an_anchor_is_true() -> None:
    """And no number."""
    document = parse_yaml(MERGED)
    assert document.data["rules"][1]["note"] is True
    assert document.data["same"] is True


LENGTH = TEXT_LENGTH_MAX - 10
AT_ONCE_SECONDS = 5.0  # it takes less than one; each of these took from a minute to for ever, or gigabytes


def repeated(piece: str) -> str:
    """A text that consists of this."""
    return (piece * (LENGTH // len(piece) + 1))[:LENGTH]


HOSTILE = {
    "brackets": repeated("["),
    "dashes": repeated("- "),
    "question marks": repeated("? "),
    "an open quote": '"' + repeated("a\n"),
    "escapes": '"' + repeated("\\"),
    "words": repeated("a "),
    "comments": repeated("# x\n"),
    "a block": "a: |\n" + repeated(" x\n")[:-10],
    "items": repeated("- 1\n"),
    "flow items": "[" + repeated("a,"),
    "flow keys": "{" + repeated("? ,"),
    "keys": "\n".join(f"k{number}: 1" for number in range(25_000)),
    "anchors": "\n".join(f"- &a{number} 1" for number in range(16_000)),
    "aliases": "- &a x\n" + repeated("- *a\n")[:-10],
    "a tag": "!" + repeated("a"),
    "a key": repeated("k") + ": 1",
    "digits": repeated("1"),
    "a long key around many": repeated("k")[: LENGTH // 2] + ": [" + "1," * 20_000 + "]",
    "long keys": "".join(" " * level + "k" * 1000 + ":\n" for level in range(49)) + " " * 49 + "- 1\n",
    "merges of merges": "b0: &b0 {a: 1}\n"
    + "\n".join(f"b{n}: &b{n}\n  <<: [{', '.join([f'*b{n - 1}'] * 10)}]" for n in range(1, 9)),
    "a merge of many": "b: &b {"
    + ",".join(f"k{number}: 1" for number in range(5000))
    + "}\n"
    + "\n".join(f"c{number}: {{<<: *b}}" for number in range(900)),
    "itself": "a: &a [*a, *a]",
}


def mistakes_in(text: str) -> None:
    """Read a text, and look for mistakes at places that it does not have."""
    try:
        document = parse_yaml(text)
        document.with_positions(
            [Violation(f"{'k.' * 1000}[{index}]", "is wrong") for index in range(100)], None
        )
    except Invalid as refused:
        message = str(refused)
    else:
        message = ""
    assert len(message) < 1000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_takes_long(text: str) -> None:
    """However it is nested, repeated or named; a mistake in it is found as soon."""
    begun = process_time()
    mistakes_in(text)
    assert process_time() - begun < AT_ONCE_SECONDS


@pytest.mark.parametrize("name", ["a long key around many", "long keys", "merges of merges"])
def test_no_text_takes_much_memory(name: str) -> None:
    """Places are looked up when there is a mistake, and paths are not kept."""
    tracemalloc.start()
    try:
        mistakes_in(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ('name: "a\\0b"', "NUL", 7),
        ('name: "\\ud800"', "surrogate", 7),
        ('"\\ud800": 1', "surrogate", 1),
        ("times: .inf", "not a finite number", 8),
        ("times: !!int x", "not a valid int", 8),
        ("name: !mine x", "tag !mine is not supported", 7),
        ("[1]: x", "must be plain text", 1),
        ("<<: 5", "only mappings can be merged", 5),
        ("name: x\nname: y", "duplicate key 'name'", 1),
    ],
)
def test_what_json_could_not_say_is_refused(text: str, says: str, column: int) -> None:
    """With its place."""
    with pytest.raises(Invalid) as refused:
        parse_yaml(text)
    (found,) = refused.value.violations
    assert says in found.message
    assert found.column == column


def test_the_first_of_several_merged_mappings_takes_precedence() -> None:
    """And a key of one's own before all."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}"
    assert parse_yaml(text).data["c"] == {"x": 3, "y": 1, "z": 2}
