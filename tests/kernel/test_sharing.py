"""Equal values of many records are shared."""

import json
from typing import Any

import pytest

from payment_sandbox.kernel.interning import CACHED_MAX, EMPTY_MAPPING, LENGTH_MAX, SharedValues

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


def copy_of(value: Any) -> Any:
    """Return a deep copy of a value."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_shared_value_has_the_same_json(value: Any) -> None:
    """A shared value has the same JSON, even if it equals a value with different JSON, such as 1 and True."""
    shared = SharedValues()
    for other in VALUES:
        shared.share(copy_of(other))
    assert json.dumps(shared.share(copy_of(value))) == json.dumps(value)


def test_strings_names_and_objects_of_strings_are_shared() -> None:
    """Equal strings, names and objects of strings are one object."""
    shared = SharedValues()
    first, second = (shared.share(copy_of({"customer": {"name": "Jan"}, "n": [1, "Jan"]})) for _ in range(2))
    assert first is not second
    assert first["customer"] is second["customer"]
    assert first["n"][1] is second["customer"]["name"]
    assert [id(name) for name in first] == [id(name) for name in second]
    assert shared.share({}) is EMPTY_MAPPING


def test_the_cache_is_limited() -> None:
    """Long strings are not cached, and the cache has a maximum size."""
    shared = SharedValues()
    assert shared.share("x" * (LENGTH_MAX + 1)) == "x" * (LENGTH_MAX + 1)
    assert not shared._known
    for number in range(3 * CACHED_MAX):
        shared.share({"id": f"order-{number}"})
        assert len(shared._known) <= CACHED_MAX
