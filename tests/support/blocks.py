"""Code blocks in Markdown, and comparison of responses with documented ones."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(\w*)(?: ([\w./-]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYTHING = "..."


class Block(NamedTuple):
    """A code block: its language, text and file name, and the block with its output."""

    language: str
    text: str
    shown: "Block | None" = None
    file: str | None = None


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks; a json or text block directly after a program is the output of the program."""
    matches = list(FENCE.finditer(text))
    is_output = False
    for index, match in enumerate(matches):
        if is_output:
            is_output = False
            continue
        shown = None
        if index + 1 < len(matches) and match[1] in ("sh", "php", "js", "java"):
            after = matches[index + 1]
            if after[1] in ("json", "text") and not text[match.end() : after.start()].strip():
                shown, is_output = Block(after[1], after[3]), True
        yield Block(match[1], match[3], shown, match[2])


def differs(shown: Any, actual: Any, path: str = "$") -> str | None:
    """Return the first difference from the documented response; omitted keys and ``...`` match anything."""
    if shown in (ANYTHING, [ANYTHING]):
        return None
    if isinstance(shown, dict) and isinstance(actual, dict):
        inner = (
            differs(value, actual[key], f"{path}.{key}") if key in actual else f"{path}.{key} is missing"
            for key, value in shown.items()
        )
        return next(filter(None, inner), None)
    if isinstance(shown, list) and isinstance(actual, list):
        return _list_differs(shown, actual, path)
    if isinstance(shown, str) and isinstance(actual, str) and fnmatchcase(actual, as_glob(shown)):
        return None
    return None if shown == actual else f"{path} is {actual!r}, documented is {shown!r}"


def _list_differs(shown: list[Any], actual: list[Any], path: str) -> str | None:
    """Compare items in order; ``...`` at one end matches any number of items, including none."""
    if shown and shown[-1] == ANYTHING and (len(shown) > 1 and shown[0] != ANYTHING):
        shown, actual = shown[:-1], actual[: len(shown) - 1]
    elif len(shown) > 1 and shown[0] == ANYTHING and shown[-1] != ANYTHING:
        shown, actual = shown[1:], actual[1 - len(shown) :]
    if len(shown) != len(actual):
        return f"{path} has {len(actual)} items, documented are {len(shown)}"
    inner = (
        differs(one, other, f"{path}[{i}]") for i, (one, other) in enumerate(zip(shown, actual, strict=True))
    )
    return next(filter(None, inner), None)


def as_glob(shown: str) -> str:
    """Return a glob pattern in which each ``...`` matches anything."""
    return shown.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]").replace(ANYTHING, "*")
