"""The statements that a store makes in every database, and how databases differ in them."""

import re
from functools import cache
from typing import Final, NamedTuple

from payment_sandbox.projects.store import HistoryRow
from payment_sandbox.storage.rows import Row


class Dialect(NamedTuple):
    """How a database wants a statement that is the same in all others."""

    tables: str
    """What the names of tables begin with, after a ``$``."""
    parameter: str
    """How its driver wants the parameter ``:name``."""


@cache
def said(dialect: Dialect, statement: str) -> str:
    """A statement in a dialect."""
    return re.sub(r":(\w+)", dialect.parameter, statement).replace("$", dialect.tables)


SQLITE: Final = Dialect("", r":\1")
POSTGRESQL: Final = Dialect("sandbox_", r"%(\1)s")

EMPTY: Final = ("DELETE FROM $record WHERE project = :id", "DELETE FROM $history WHERE project = :id")
"""What a project begins with, and a new epoch of it."""

CHANGE: Final = "chosen = coalesce(:chosen, chosen), counters = coalesce(:counters, counters)"
"""What a commit changes of a project itself."""

REPLACE: Final = "ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body"
"""What becomes of a record that is there already."""

PROJECTS: Final = "identity, chosen, counters FROM $project ORDER BY"

RECORD_COLUMNS: Final = ", ".join(Row._fields)
HISTORY_COLUMNS: Final = ", ".join(HistoryRow._fields)
HISTORY: Final = f"""
    SELECT {HISTORY_COLUMNS} FROM $history WHERE project = :id AND number <= :number ORDER BY number
"""
