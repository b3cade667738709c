"""Random changes to documents, as careless or hostile clients send them."""

import json
import random  # noqa: TID251 (seeded: every run is the same)
from collections.abc import Callable, Iterator
from typing import Any, Final

HOSTILE: Final[tuple[Any, ...]] = (
    *(
        None,
        True,
        0,
        -1,
        1 << 70,
        1.5,
        "",
        "x",
        "\ud800",
        "a\0b",
        "javascript:alert(1)",
        "file:///etc/passwd",
    ),
    *("http://․/", "9999-12-31T23:59:59+00:00", "2026-01-01", "P9999Y", "P" + "9" * 400 + "D", "<script>"),
    *("x" * 5000, [], {}, [[]], {"a": 1}),
)


def mutate(document: Any, source: random.Random) -> Any:
    """Return a copy with one to three changes at random places."""
    copy = json.loads(json.dumps(document))
    for _ in range(source.randint(1, 3)):
        places = list(_places(copy))
        if not places:
            return source.choice(HOSTILE)
        holder, key = source.choice(places)
        source.choice(CHANGES)(holder, key, source, copy)
    return json.loads(json.dumps(copy))


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield node, key
        yield from _places(value)


def _remove(holder: Any, key: Any, source: random.Random, whole: Any) -> None:
    del holder[key]


def _corrupt(holder: Any, key: Any, source: random.Random, whole: Any) -> None:
    holder[key] = source.choice(HOSTILE)


def _shift(holder: Any, key: Any, source: random.Random, whole: Any) -> None:
    value = holder[key]
    holder[key] = value + source.choice((-1, 1, 1000)) if isinstance(value, int) else source.choice(HOSTILE)


def _exchange(holder: Any, key: Any, source: random.Random, whole: Any) -> None:
    """Replace the value with another one of the document, preferably of the same key."""
    others = [(other, name) for other, name in _places(whole) if name == key] or list(_places(whole))
    other, name = source.choice(others)
    holder[key] = json.loads(json.dumps(other[name]))


def _repeat(holder: Any, key: Any, source: random.Random, whole: Any) -> None:
    if isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(holder[key])))
    else:
        holder[source.choice(("x", "", "kind", "id"))] = holder[key]


CHANGES: Final[tuple[Callable[[Any, Any, random.Random, Any], None], ...]] = (
    _remove,
    _corrupt,
    _shift,
    _exchange,
    _exchange,
    _repeat,
)
