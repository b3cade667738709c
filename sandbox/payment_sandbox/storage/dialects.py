"""SQL statements shared by all databases, and the differences between their dialects."""

import re
from functools import cache
from typing import Final, NamedTuple

from payment_sandbox.projects.store import JournalRow
from payment_sandbox.storage.rows import Row


class Dialect(NamedTuple):
    """The syntax of shared statements in one database."""

    tables: str
    """The prefix of table names, written as ``$`` in statements."""
    parameter: str
    """The driver's spelling of the parameter ``:name``."""


@cache
def translate(dialect: Dialect, statement: str) -> str:
    """Translate a statement into a dialect."""
    return re.sub(r":(\w+)", dialect.parameter, statement).replace("$", dialect.tables)


SQLITE: Final = Dialect("", r":\1")
POSTGRESQL: Final = Dialect("sandbox_", r"%(\1)s")

CLEAR_PROJECT: Final = ("DELETE FROM $record WHERE project = :id", "DELETE FROM $history WHERE project = :id")
"""Statements to start a new epoch of a project."""

UPDATED_COLUMNS: Final = "chosen = coalesce(:chosen, chosen), counters = coalesce(:counters, counters)"
"""The columns of a project updated by a commit."""

REPLACE_ON_CONFLICT: Final = "ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body"
"""The conflict clause for an existing record."""

PROJECTS_QUERY: Final = "identity, chosen, counters FROM $project ORDER BY"

RECORD_COLUMNS: Final = ", ".join(Row._fields)
JOURNAL_COLUMNS: Final = ", ".join(JournalRow._fields)
SELECT_JOURNAL: Final = f"""
    SELECT {JOURNAL_COLUMNS} FROM $history WHERE project = :id AND number <= :number ORDER BY number
"""
