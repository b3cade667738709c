"""A simulated full disk for state files."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from payment_sandbox.storage.sqlite import StateFile


@contextmanager
def full(file: StateFile) -> Iterator[None]:
    """Make every write to the file fail, as on a full disk."""
    database = file._database
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    for size in (900, 10):
        for number in range(10_000):
            with suppress(sqlite3.IntegrityError):
                try:
                    database.execute(
                        "INSERT INTO record (project, kind, id, body) VALUES (-1, ?, ?, ?)",
                        (str(size), number, "x" * size),
                    )
                except sqlite3.OperationalError:
                    break
    try:
        yield
    finally:
        database.execute("PRAGMA max_page_count = 1000000")
        database.execute("DELETE FROM record WHERE project = -1")
