"""Snapshots as bodies: parsed piece by piece, and refused by their size before they are parsed or sent.

A snapshot is far larger than other bodies. Between two pieces, other threads can run.
"""

import json
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from werkzeug.wrappers import Response

from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.loading import lazy
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.responses import encode_items, streamed_answer
from payment_sandbox.web.bodies import (
    NESTING_MAX,
    STATE_BYTES_MAX,
    build_object,
    count_separators,
    parse_value,
    raw_body,
    refuse_other_types,
)
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused

if TYPE_CHECKING:
    from payment_sandbox.storage import snapshot
else:
    snapshot = lazy("payment_sandbox.storage.snapshot")  # 7 of 340 ms to a first payment test

STATE_VALUES_MAX: Final = 5_000_000  # an order with its webhooks has 100 to 200
RECORD_VALUES_MAX: Final = 500_000  # parsed at once, which blocks other threads
COUNTED_AT_ONCE: Final = 1 << 23
PIECE_BYTES: Final = 1 << 20
SPACES: Final = Pattern("[ \t\n\r]*")
TOO_LARGE: Final = (
    f"the project is too large for a snapshot, which has at most {STATE_BYTES_MAX >> 20} MiB, and"
    f" {STATE_VALUES_MAX:,} values, {RECORD_VALUES_MAX:,} of them in one order"
)


def snapshot_text(call: Call) -> bytes:
    """Read the request's body, which is a snapshot.

    Raises:
        RequestRefused: see ``bodies.json_body``.
    """
    body = raw_body(call, STATE_BYTES_MAX)
    refuse_other_types(call, body)
    return body


def restore_text(project: Project, text: bytes) -> None:
    """Restore a snapshot.

    Raises:
        RequestRefused: see ``parse_snapshot``.
        Invalid: see ``snapshot.restore``.
    """
    snapshot.restore(project, parse_snapshot(text))


def parse_snapshot(body: bytes) -> Any:
    """Parse a snapshot strictly: an object whose values and items of lists are parsed one by one.

    Raises:
        RequestRefused: 413, too many values; 400, see ``bodies.parse``.
    """
    starts = range(0, len(body), COUNTED_AT_ONCE)
    if sum(count_separators(body[start : start + COUNTED_AT_ONCE]) for start in starts) > STATE_VALUES_MAX:
        raise RequestRefused(413, f"the snapshot has more than {STATE_VALUES_MAX:,} values")
    return _SnapshotParser(body).parse()


def snapshot_answer(project: Project) -> Response:
    """Build a response with a snapshot.

    Raises:
        RequestRefused: 413, the snapshot could not be restored, because it is too large.
    """
    encode_parts = snapshot.capture(project)
    refuse_too_large(encode_items(encode_parts()))
    return streamed_answer(encode_parts())


def refuse_too_large(pieces: Iterable[str]) -> None:
    """Refuse a snapshot that could not be restored; each of its orders is one of its pieces.

    Raises:
        RequestRefused: 413.
    """
    values = length = 0
    for piece in pieces:
        in_piece = count_separators(piece.encode())
        values, length = values + in_piece, length + len(piece)
        if in_piece > RECORD_VALUES_MAX or values > STATE_VALUES_MAX or length > STATE_BYTES_MAX:
            raise RequestRefused(413, TOO_LARGE)


class _SnapshotParser:
    """Parses a body through a window of decoded text, which begins where the next value does."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._decoder = getincrementaldecoder("utf-8")()
        self._read_bytes = len(BOM_UTF8) if body.startswith(BOM_UTF8) else 0
        self._text = ""
        self._position = 0
        self._dropped = 0  # characters before the window

    def parse(self) -> Any:
        if self._next_character() != "{":
            data = self._value(NESTING_MAX)
        else:
            self._position += 1
            data = build_object(list(self._members()))
        if self._next_character():
            raise self._syntax_error("Extra data", self._position)
        return data

    def _members(self) -> Iterator[tuple[str, Any]]:
        if self._take("}"):
            return
        while True:
            if self._next_character() != '"':
                raise self._syntax_error("Expecting property name enclosed in double quotes", self._position)
            name = self._value(1)
            if not self._take(":"):
                raise self._syntax_error("Expecting ':' delimiter", self._position)
            if self._take("["):
                yield name, list(self._items())
            else:
                yield name, self._value(NESTING_MAX - 1)
            if self._take("}"):
                return
            if not self._take(","):
                raise self._syntax_error("Expecting ',' delimiter", self._position)

    def _items(self) -> Iterator[Any]:
        if self._take("]"):
            return
        while True:
            yield self._value(NESTING_MAX - 2)
            if self._take("]"):
                return
            if not self._take(","):
                raise self._syntax_error("Expecting ',' delimiter", self._position)

    def _take(self, character: str) -> bool:
        is_next = self._next_character() == character
        self._position += is_next
        return is_next

    def _next_character(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            between = SPACES.compiled.match(self._text, self._position)
            self._position = between.end() if between is not None else self._position
            if self._position < len(self._text):
                return self._text[self._position]
            if not self._read_more():
                return ""

    def _value(self, levels_max: int) -> Any:
        """Parse the next value; if the window may end inside of it, extend the window first."""
        self._next_character()
        while True:
            try:
                data, end = parse_value(self._text, self._position, levels_max)
            except json.JSONDecodeError as error:
                if not self._read_more():
                    raise self._syntax_error(error.msg, error.pos) from None
            else:
                if end < len(self._text) or not self._read_more():  # a number may go on after the window
                    self._position = end
                    return data

    def _read_more(self) -> bool:
        """Extend the window, at least to its double length; return False at the end of the body."""
        if self._read_bytes >= len(self._body):
            return False
        self._text = self._text[self._position :]
        self._dropped, self._position = self._dropped + self._position, 0
        if count_separators(self._text.encode("utf-8", "surrogatepass")) > RECORD_VALUES_MAX:
            raise RequestRefused(
                413, f"a value of the snapshot has more than {RECORD_VALUES_MAX:,} values in it"
            )
        end = self._read_bytes + max(PIECE_BYTES, len(self._text))
        try:
            self._text += self._decoder.decode(self._body[self._read_bytes : end], end >= len(self._body))
        except UnicodeDecodeError as error:
            at = self._read_bytes - len(self._decoder.getstate()[0]) + error.start
            raise RequestRefused(400, f"the body is not UTF-8: byte {at} is invalid") from None
        self._read_bytes = end
        return True

    def _syntax_error(self, problem: str, position: int) -> RequestRefused:
        return RequestRefused(
            400, f"the body is not JSON: {problem} at character {self._dropped + position + 1}"
        )
