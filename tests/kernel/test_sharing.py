"""One copy of what many records have in common."""

import json
from typing import Any

import pytest

from payment_sandbox.kernel.sharing import CACHED_MAX, EMPTY_MAPPING, LENGTH_MAX, SharedValues

VALUES = [
    "socks",
    {"name": "Jan", "country": "NL"},
    {"country": "NL", "name": "Jan"},
    {"name": {"first": "Jan"}, "tags": ["a", "b", {"c": "d"}]},
    {"a": 1},
    {"a": 1.0},
    {"a": True},
    {"a": "1"},
    {"a": None, "b": []},
    {},
    [],
    17,
]


def fresh(value: Any) -> Any:
    """An equal value that has no object in common with it."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_is_shared_is_written_as_it_was(value: Any) -> None:
    """Also where Python calls two values equal that JSON writes differently."""
    shared = SharedValues()
    for other in VALUES:
        shared.share(fresh(other))
    assert json.dumps(shared.share(fresh(value))) == json.dumps(value)


def test_texts_names_and_objects_of_texts_are_there_once() -> None:
    """Wherever they stand."""
    shared = SharedValues()
    first, second = (shared.share(fresh({"customer": {"name": "Jan"}, "n": [1, "Jan"]})) for _ in range(2))
    assert first is not second
    assert first["customer"] is second["customer"]
    assert first["n"][1] is second["customer"]["name"]
    assert [id(name) for name in first] == [id(name) for name in second]
    assert shared.share({}) is EMPTY_MAPPING


def test_not_everything_is_remembered() -> None:
    """Long texts never, and others until there are many."""
    shared = SharedValues()
    assert shared.share("x" * (LENGTH_MAX + 1)) == "x" * (LENGTH_MAX + 1)
    assert not shared._known
    for number in range(3 * CACHED_MAX):
        shared.share({"id": f"order-{number}"})
        assert len(shared._known) <= CACHED_MAX
