"""Finds secrets in a shop's logs, output and stored data: keys, card numbers and CVCs."""

import logging
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.projects.project import Project
from pytest_payment_sandbox.rehearsal.reconciliation import BookProblem

SQLITE_HEADER: Final = b"SQLite format 3\x00"
SQLITE_LOG_SUFFIXES: Final = ("-wal", "-journal")  # suffixes of SQLite's write-ahead log and rollback journal
_SQLITE_LOG_SUFFIX: Final = re.compile(r"-(?:wal|journal|shm)$")
LEAK_KIND: Final = "secret"  # the kind of problem
ROWS_MAX: Final = 10_000  # rows read per table
_TRACEBACK_FRAME: Final = re.compile(
    r"""(?m)^(?P<indent>[ |+]*)File ".*", line \d+.*\n(?:(?P=indent)[ |]+\S.*(?:\n|$))*"""
)
"""A frame of a traceback, including chained exceptions and exception groups: code, without data."""

Column = str | bytes | int | float | None
Traces = Callable[[], Iterable[str | Path]]
"""The value of the fixture ``payment_traces``: a function that lists strings and files of shop data."""


class _MessageCollector(logging.Handler):
    """Collects the messages of all log records."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Collect the message of a record."""
        with suppress(Exception):  # the format string of a record can be invalid
            self.texts.append(record.getMessage())


@contextmanager
def collect_logs() -> Iterator[list[str]]:
    """Collect log messages of all levels: tests show only warnings, but production often logs more."""
    collector, level = _MessageCollector(), logging.root.level
    logging.root.addHandler(collector)
    logging.root.setLevel(logging.DEBUG)
    try:
        yield collector.texts
    finally:
        logging.root.setLevel(level)
        logging.root.removeHandler(collector)


def leaks_in_output(project: Project, texts: Iterable[str]) -> list[BookProblem]:
    """Find secrets in the shop's logs and output."""
    if not any(_has_secret(project.masking, _TRACEBACK_FRAME.sub("", text)) for text in texts):
        return []
    return [BookProblem(LEAK_KIND, "the shop's log or output contains a key, a card number or a CVC")]


def leaks_in_storage(project: Project, traces: Traces | None) -> list[BookProblem]:
    """Find secrets in the shop's stored data: the strings and files that ``traces`` lists.

    Raises:
        TypeError: the fixture lists values of other types.
        OSError: a file cannot be read.
    """
    if traces is None or not any(_holds_secret(project.masking, trace) for trace in traces()):
        return []
    return [BookProblem(LEAK_KIND, "the shop's stored data contains a key, a card number or a CVC")]


def _has_secret(masking: Masking, text: str) -> bool:
    return masking.mask_text(text) != text


def _holds_secret(masking: Masking, trace: str | Path) -> bool:
    if isinstance(trace, str):
        return _has_secret(masking, trace)
    if not isinstance(trace, Path):
        raise TypeError(f"payment_traces must list strings and file paths, not {trace!r}")
    database = Path(_SQLITE_LOG_SUFFIX.sub("", str(trace)))
    if database.is_file() and database.read_bytes().startswith(SQLITE_HEADER):
        return any(masking.mask_record(value, column) != value for column, value in _read_columns(database))
    return _has_secret(masking, trace.read_bytes().decode("utf-8", errors="replace"))


def _read_columns(database: Path) -> Iterator[tuple[str, Column]]:
    """Yield the columns of all rows in a copy of a database; bytes of the file can look like a secret."""
    with TemporaryDirectory() as folder, suppress(sqlite3.Error):
        copy = Path(folder) / "copy"
        for suffix in ("", *SQLITE_LOG_SUFFIXES):
            path = database.with_name(database.name + suffix)
            if path.exists():
                Path(f"{copy}{suffix}").write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copy)) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                quoted = table.replace('"', '""')
                rows = connection.execute(f'SELECT * FROM "{quoted}" LIMIT {ROWS_MAX}')
                names = [column[0] for column in rows.description]
                for row in rows:
                    yield from zip(names, map(_as_text, row), strict=True)


def _as_text(value: Column) -> Column:
    """Return integers as text, because a card number can be stored as an integer."""
    return str(value) if isinstance(value, int) else value
