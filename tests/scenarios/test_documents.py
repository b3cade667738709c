"""Parsed YAML: its data, and the position of each part."""

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


def test_merged_keys_have_the_position_of_their_mapping() -> None:
    """A merged key has the position of the mapping that it is merged into; an anchored ``true`` is a boolean."""
    document = parse_yaml(MERGED)
    assert document.data["rules"] == [{"times": 1}, {"note": True, "times": 1}]
    assert (document.data["rules"][1]["note"], document.data["same"]) == (True, True)
    assert isinstance(document.data["same"], bool)
    assert document.position_of("base.times") == Position(1, 14)
    assert document.position_of("rules[0].times") == Position(3, 5)
    assert document.position_of("rules[1].note") == Position(5, 5)
    assert document.position_of("rules[1].times") == Position(4, 5)


LENGTH = TEXT_LENGTH_MAX // 4
# parsing takes a fifth of a second; each hostile text once took minutes, forever or gigabytes
PARSING_SECONDS_MAX = 1.5


def repeat(piece: str) -> str:
    """Return a text that repeats a piece up to the maximum length."""
    return (piece * (LENGTH // len(piece) + 1))[:LENGTH]


HOSTILE = {  # tests/properties/test_linear.py repeats single characters
    "an open quote": '"' + repeat("a\n"),
    "escapes": '"' + repeat("\\"),
    "a block": "a: |\n" + repeat(" x\n")[:-10],
    "flow keys": "{" + repeat("? ,"),
    "keys": "\n".join(f"k{number}: 1" for number in range(6000)),
    "anchors": "\n".join(f"- &a{number} 1" for number in range(4000)),
    "aliases": "- &a x\n" + repeat("- *a\n")[:-10],
    "a tag": "!" + repeat("a"),
    "a key": repeat("k") + ": 1",
    "a long key around many": repeat("k")[: LENGTH // 2] + ": [" + "1," * 5000 + "]",
    "long keys": "".join(" " * level + "k" * 1000 + ":\n" for level in range(49)) + " " * 49 + "- 1\n",
    "merges of merges": "b0: &b0 {a: 1}\n"
    + "\n".join(f"b{n}: &b{n}\n  <<: [{', '.join([f'*b{n - 1}'] * 10)}]" for n in range(1, 9)),
    "a merge of many": "b: &b {"
    + ",".join(f"k{number}: 1" for number in range(1250))
    + "}\n"
    + "\n".join(f"c{number}: {{<<: *b}}" for number in range(225)),
    "itself": "a: &a [*a, *a]",
}


def parse_with_violations(text: str) -> None:
    """Parse a text, and look up the positions of violations at paths that it does not have."""
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
def test_hostile_texts_take_little_time(text: str) -> None:
    """A hostile text, and the positions of its violations, are parsed in bounded time, at best of three."""

    def seconds() -> float:
        started = process_time()
        parse_with_violations(text)
        return process_time() - started

    assert any(seconds() < PARSING_SECONDS_MAX for _ in range(3))


@pytest.mark.parametrize("name", ["a long key around many", "long keys", "merges of merges"])
def test_hostile_texts_take_little_memory(name: str) -> None:
    """Parsing a hostile text takes bounded memory: positions are looked up on demand."""
    tracemalloc.start()
    try:
        parse_with_violations(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "words", "column"),
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
def test_values_without_a_json_equivalent_are_refused(text: str, words: str, column: int) -> None:
    """YAML values without a JSON equivalent are refused with their position."""
    with pytest.raises(Invalid) as refused:
        parse_yaml(text)
    (violation,) = refused.value.violations
    assert words in violation.message
    assert violation.column == column


def test_the_first_of_several_merged_mappings_takes_precedence() -> None:
    """The first merged mapping takes precedence over later ones, and the mapping's own keys over all."""
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}"
    assert parse_yaml(text).data["c"] == {"x": 3, "y": 1, "z": 2}
