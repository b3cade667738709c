"""Finds the line of a shop that decided to make a call, rather than the client that makes all calls."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from payment_sandbox.testing.shops.tracebacks import LIBRARY_FOLDERS, POSTING_MODULE, stack_frames

FOREIGN_PATHS: Final = (
    "node_modules/",
    "vendor/",
    "site-packages/",
    "/lib/python",
    "payment_sandbox/",
    "test",
    "spec",
)
_LINE_PATTERN: Final = re.compile(
    r'File "(?P<python>[^"]+)", line (?P<python_line>\d+)'
    r"|(?:file://|(?<![:/\w]))(?P<file>/[^\s():/][^\s():]*\.\w+)(?::|\()(?P<line>\d+)"
)
"""A frame in a Python traceback, or in a stack trace of JavaScript or PHP."""

SourceLine = tuple[str, str]
"""A file with its absolute path, and a line number."""


class LocatedCall(NamedTuple):
    """A call by the shop: its method and path without ids, and the shop's lines, innermost first."""

    call: str
    lines: Sequence[SourceLine]


def current_lines() -> list[SourceLine]:
    """Return the lines of the shop in the current call, innermost first, up to the webhook handler."""
    frames = ((code.co_filename, str(number)) for code, number in stack_frames())
    return [
        (file, number)
        for file, number in takewhile(lambda frame: frame[0] != POSTING_MODULE, frames)
        if not file.startswith((*LIBRARY_FOLDERS, "<")) and not _is_foreign(file)
    ]


def shop_lines(text: str) -> list[SourceLine]:
    """Return the shop's lines in the stack traces in a text, innermost first.

    The innermost frame of a stack trace is the last one in Python, and the first one in other languages.
    """
    frames = [
        (match["python"] or match["file"], match["python_line"] or match["line"], bool(match["python"]))
        for match in _LINE_PATTERN.finditer(text)
    ]
    own = [frame for frame in frames if not _is_foreign(frame[0])]
    lines = [(file, line) for file, line, _ in own]
    return lines[::-1] if own and own[0][2] else lines


def _is_foreign(file: str) -> bool:
    """Whether a file belongs to a library or a test."""
    name = Path(file).name.lower()
    return any(each in (name if each in ("test", "spec") else file) for each in FOREIGN_PATHS)


def deciding_line(call: LocatedCall, calls: Iterable[LocatedCall]) -> SourceLine | None:
    """Return the line that decided on a call: the innermost line outside the shop's client.

    The client is a file that makes several kinds of calls for other files. In a shop without a client, it is
    the innermost line that only calls of this kind use. ``calls`` has all calls of the run.
    """
    kinds: dict[SourceLine, set[str]] = defaultdict(set)
    inner_kinds: dict[str, set[str]] = defaultdict(set)  # the calls that each file makes for other files
    for each in calls:
        for line in each.lines:
            kinds[line].add(each.call)
        if len({file for file, _ in each.lines}) > 1:
            inner_kinds[each.lines[0][0]].add(each.call)
    lines = [line for line in call.lines if len(inner_kinds[line[0]]) < 2] or call.lines
    own = [line for line in lines if kinds[line] <= {call.call}]
    return next(iter([*own, *lines]), None)
