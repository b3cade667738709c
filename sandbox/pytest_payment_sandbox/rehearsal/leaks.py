"""Finds secrets in a shop's output, log and stored data: keys, card numbers and CVCs."""

import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from payment_sandbox.judge.books import BookProblem
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.project import Project

LEAK_KIND: Final = "secret"
SQLITE_HEADER: Final = b"SQLite format 3\x00"
ROWS_MAX: Final = 10_000  # rows read per table
_FRAME: Final = re.compile(r'(?m)^(?P<indent>[ |+]*)File ".*", line \d+.*\n(?:(?P=indent)[ |]+\S.*(?:\n|$))*')
"""A frame of a traceback: code, without data."""
Traces = Callable[[], Iterable[str | Path]]
"""The value of the fixture ``payment_traces``: a function that lists strings and files of shop data."""


@contextmanager
def collect_logs(texts: list[str]) -> Iterator[None]:
    """Collect log messages of all levels: tests show only warnings, but production often logs more."""
    level, handler = logging.root.level, logging.Handler()

    def emit(record: logging.LogRecord) -> None:
        with suppress(Exception):  # the format string of a record can be invalid
            texts.append(record.getMessage())

    handler.emit = emit  # type: ignore[method-assign]
    logging.root.addHandler(handler)
    logging.root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(handler)


def find_leaks(project: Project, traces: Traces | None, output: Iterable[str] = ()) -> Iterator[BookProblem]:
    """Find secrets in stored data, and in output.

    Raises:
        TypeError: the fixture lists values of other types.
    """
    masking = project.masking
    if any(_is_secret(masking, _FRAME.sub("", text)) for text in output):
        yield BookProblem(LEAK_KIND, "the shop's log or output contains a key, a card number or a CVC")
    if traces is not None and any(_holds_secret(masking, trace) for trace in traces()):
        yield BookProblem(LEAK_KIND, "the shop's stored data contains a key, a card number or a CVC")


def _is_secret(masking: Masking, text: str) -> bool:
    return masking.mask_text(text) != text


def _holds_secret(masking: Masking, trace: str | Path) -> bool:
    if isinstance(trace, str):
        return _is_secret(masking, trace)
    if not isinstance(trace, Path):
        raise TypeError(f"payment_traces must list strings and file paths, not {trace!r}")
    database = Path(re.sub(r"-(?:wal|journal|shm)$", "", str(trace)))
    if not (database.is_file() and database.read_bytes().startswith(SQLITE_HEADER)):
        return _is_secret(masking, trace.read_bytes().decode("utf-8", errors="replace"))
    return any(masking.mask_record(value, column) != value for column, value in _columns(database))


def _columns(database: Path) -> Iterator[tuple[str, object]]:
    """Yield the columns of all rows: the bytes of a database can look like a secret, its values cannot."""
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection,
    ):
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = connection.execute(f"SELECT * FROM [{table}] LIMIT {ROWS_MAX}")
            names = [column[0] for column in rows.description]
            for row in rows:
                yield from ((n, str(v) if isinstance(v, int) else v) for n, v in zip(names, row, strict=True))
