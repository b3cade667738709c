"""Finds code blocks in Markdown, and compares responses with those shown."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

FENCE = re.compile(r"^```(\w*)(?: ([\w./-]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ANYTHING = "..."


class Block(NamedTuple):
    """One block: its language, its text, the output shown after it, and the name of the file that it is."""

    language: str
    text: str
    shown: "Block | None" = None
    file: str | None = None


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text; a json or text block right after a program shows what the program prints."""
    found = list(FENCE.finditer(text))
    taken = False
    for index, match in enumerate(found):
        if taken:
            taken = False
            continue
        shown = None
        if index + 1 < len(found) and match[1] in ("sh", "php", "js", "java"):
            after = found[index + 1]
            if after[1] in ("json", "text") and not text[match.end() : after.start()].strip():
                shown, taken = Block(after[1], after[3]), True
        yield Block(match[1], match[3], shown, match[2])


def differs(shown: Any, found: Any, path: str = "$") -> str | None:
    """Where a response differs from the one shown; keys that are not shown, and ``...``, match anything."""
    if shown in (ANYTHING, [ANYTHING]):
        return None
    if isinstance(shown, dict) and isinstance(found, dict):
        inner = (
            differs(value, found[key], f"{path}.{key}") if key in found else f"{path}.{key} is not there"
            for key, value in shown.items()
        )
        return next(filter(None, inner), None)
    if isinstance(shown, list) and isinstance(found, list):
        return _list_differs(shown, found, path)
    if isinstance(shown, str) and isinstance(found, str) and fnmatchcase(found, as_glob(shown)):
        return None
    return None if shown == found else f"{path} is {found!r}, and {shown!r} is shown"


def _list_differs(shown: list[Any], found: list[Any], path: str) -> str | None:
    """Compares items in order; ``...`` at one end matches any number of items, including none."""
    if shown and shown[-1] == ANYTHING and (len(shown) > 1 and shown[0] != ANYTHING):
        shown, found = shown[:-1], found[: len(shown) - 1]
    elif len(shown) > 1 and shown[0] == ANYTHING and shown[-1] != ANYTHING:
        shown, found = shown[1:], found[1 - len(shown) :]
    if len(shown) != len(found):
        return f"{path} holds {len(found)} items, and {len(shown)} are shown"
    inner = (
        differs(one, other, f"{path}[{i}]") for i, (one, other) in enumerate(zip(shown, found, strict=True))
    )
    return next(filter(None, inner), None)


def as_glob(shown: str) -> str:
    """A glob pattern in which each ``...`` matches anything."""
    return shown.replace("[", "[[]").replace("*", "[*]").replace("?", "[?]").replace(ANYTHING, "*")


def check_shown(shown: Block, printed: str) -> None:
    """Compare what was printed with what is shown."""
    if shown.language == "json":
        lines = [line for line in printed.splitlines() if line.strip()]
        assert lines, f"nothing was printed, and this is shown: {shown.text}"
        problem = differs(json.loads(shown.text), json.loads(lines[-1]))
        assert problem is None, f"{problem}\n{lines[-1][:3000]}"
    else:
        for line in shown.text.splitlines():
            assert any(fnmatchcase(found.strip(), as_glob(line)) for found in printed.splitlines()), (
                f"{line!r} is shown, and this was printed:\n{printed[-2000:]}"
            )
