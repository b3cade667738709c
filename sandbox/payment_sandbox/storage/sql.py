"""The state in a database: the same rows and the same statements for SQLite and PostgreSQL."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import DamagedProject, Registry
from payment_sandbox.projects.store import ChangeSet, JournalRow, Store
from payment_sandbox.storage.codec import ServerRows, StateRefused, StoredIds, decode, encode, join_problems
from payment_sandbox.storage.journal_rows import RECORDS_MAX
from payment_sandbox.storage.memory import MemoryStore
from payment_sandbox.storage.rows import (
    ProjectRows,
    encode_counters,
    read_identity,
    resume_project,
    rows_of,
)

PUT_VALUE: Final = """
    INSERT INTO server (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body
"""
INSERT_PROJECT: Final = "INSERT INTO project (number, id, identity) VALUES (?, ?, ?)"
UPDATE_PROJECT: Final = """
    UPDATE project SET chosen = coalesce(?, chosen), counters = coalesce(?, counters) WHERE number = ?
"""
DELETE_PROJECT: Final = "DELETE FROM project WHERE number = ?"
PUT_RECORD: Final = """
    INSERT INTO record (project, kind, id, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body
"""
DELETE_RECORD: Final = "DELETE FROM record WHERE project = ? AND kind = ? AND id = ?"
CLEAR_PROJECT: Final = ("DELETE FROM record WHERE project = ?", "DELETE FROM history WHERE project = ?")
"""Statements to start a new epoch of a project."""
PUT_HISTORY: Final = """
    INSERT INTO history (project, kind, number, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (project, number) DO UPDATE SET kind = excluded.kind, body = excluded.body
"""
DELETE_OLD_HISTORY: Final = f"""
    DELETE FROM history
    WHERE project = ? AND number < (SELECT max(number) FROM history WHERE project = ?) - {RECORDS_MAX}
"""
SELECT_VALUES: Final = "SELECT name, body FROM server"
SELECT_PROJECTS: Final = """
    SELECT number, id, identity, chosen, counters,
        (SELECT max(history.number) FROM history WHERE history.project = project.number)
    FROM project ORDER BY number
"""
SELECT_RECORDS: Final = "SELECT project, kind, body FROM record ORDER BY project, position"
SELECT_HISTORY: Final = """
    SELECT kind, number, body FROM history WHERE project = ? AND number <= ? ORDER BY number
"""

DAMAGES: Final = (Invalid, KeyError, ValueError, TypeError, OverflowError, RecursionError)
"""The errors of reading damaged rows."""

log = logging.getLogger(__name__)

Statement = tuple[str, Sequence[Any]]
Select = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]


class StoredState(NamedTuple):
    """All rows of a database, except the journals."""

    server: ServerRows
    projects: Sequence[ProjectRows]


def read_state(select: Select) -> StoredState:
    """Read all rows except the journals.

    Raises:
        DAMAGES: the rows that belong to no project, or to none alone, are damaged.
    """
    values = {name: json.loads(body) for name, body in select(SELECT_VALUES, ())}
    server: ServerRows = decode(ServerRows, values, "server")
    projects = [ProjectRows(*row) for row in select(SELECT_PROJECTS, ())]
    records: dict[int, list[tuple[str, str]]] = {}
    for number, rows in groupby(select(SELECT_RECORDS, ()), itemgetter(0)):
        records[number] = [(kind, body) for _, kind, body in rows]
    if strays := records.keys() - {project.number for project in projects}:
        raise ValueError(f"{sum(len(records[number]) for number in strays)} records belong to no project")
    return StoredState(server, [each._replace(records=records.get(each.number, ())) for each in projects])


class SqlStorage(ABC):
    """A database for all projects of a server; each change set is one transaction."""

    place: str
    """The name of the database in messages."""

    def __init__(self) -> None:
        self.server = ServerRows()
        self._numbers: dict[str, int] = {}  # of the projects
        self._new_numbers: Iterator[int] = count(1)

    @abstractmethod
    def run(self, statements: Sequence[Statement]) -> None:
        """Run statements as one transaction.

        Raises:
            NotStored: nothing has changed.
            StateLost: it is unknown whether the transaction was committed.
        """

    @abstractmethod
    def select(self, query: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return the rows of a query.

        Raises:
            NotStored: the database does not answer.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the database, so that another server can use it."""

    def begin(self, state: StoredState) -> None:
        """Continue from the rows of the database."""
        self.server = state.server
        self._numbers = {project.id: project.number for project in state.projects}
        self._new_numbers = count(max(self._numbers.values(), default=0) + 1)

    def create_store(self, project: Project) -> Store:
        """Create the empty store of a project's next epoch."""
        return SqlStore(self, project)

    def save_ids(self, ids: Ids) -> None:
        """Save the generator of project identifiers."""
        self.run([(PUT_VALUE, ("ids", json.dumps(encode(StoredIds(ids.seed, ids.counts)))))])

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project with all its records; user-chosen keys are never reused."""
        deleted = sorted({*self.server.deleted, *filter(None, [fixed_key])})
        number = self._numbers.get(project_id)
        statements: list[Statement] = [(each, (number,)) for each in (*CLEAR_PROJECT, DELETE_PROJECT)]
        if fixed_key is not None:
            statements.append((PUT_VALUE, ("deleted", json.dumps(deleted))))
        self.run(statements)
        self.server = self.server._replace(deleted=tuple(deleted))
        self._numbers.pop(project_id, None)

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return key_digest in self.server.deleted

    def write(self, identity: Identity, statements: Callable[[int], Iterable[Statement]]) -> None:
        """Write rows of a project, which may be new; the statements contain its number."""
        number, new = self._numbers.get(identity.project_id), list[Statement]()
        if number is None:
            number = next(self._new_numbers)
            new.append((INSERT_PROJECT, (number, identity.project_id, json.dumps(encode(identity)))))
        self.run([*new, *statements(number)])
        self._numbers[identity.project_id] = number

    def write_journal_rows(self, project_id: str, rows: Sequence[JournalRow]) -> None:
        """Write journal records of a project, and delete the oldest beyond the limit."""
        number = self._numbers.get(project_id)
        if number is not None:  # otherwise the project has been deleted meanwhile
            puts = [(PUT_HISTORY, (number, *row)) for row in rows]
            self.run([*puts, (DELETE_OLD_HISTORY, (number, number))])

    def read_journal_rows(self, project_id: str, number_max: int) -> Sequence[JournalRow]:
        """Return the records of a journal up to a number, oldest first."""
        values = (self._numbers.get(project_id), number_max)
        return [JournalRow(*row) for row in self.select(SELECT_HISTORY, values)]


class SqlStore(MemoryStore):
    """A store that reads from memory; a commit writes rows first and then updates memory."""

    is_durable = True

    def __init__(self, storage: SqlStorage, project: Project) -> None:
        super().__init__()
        self.is_new = True
        self._identity = project.identity
        self._real = project.services.real
        self._storage = storage

    def save(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Write a change set, with the number of dropped webhooks."""
        if change.counters is not None:
            dropped = self.deliveries_dropped + len(surplus)
            change = change._replace(counters=replace(change.counters, deliveries_dropped=dropped))
        self._storage.write(self._identity, lambda number: self._statements(number, change, surplus))
        self.is_new = False

    def _statements(self, number: int, change: ChangeSet, surplus: Sequence[str]) -> Iterator[Statement]:
        for statement in CLEAR_PROJECT if self.is_new else ():
            yield statement, (number,)
        for row in rows_of(change, surplus):
            if row.body is not None:
                yield PUT_RECORD, (number, *row)
            else:
                yield DELETE_RECORD, (number, row.kind, row.id)
        chosen = json.dumps(encode(change.chosen)) if change.chosen is not None else None
        counters = change.counters
        encoded = encode_counters(counters, self._real.wall_now()) if counters is not None else None
        yield UPDATE_PROJECT, (chosen, encoded, number)

    def save_journal_rows(self, rows: Sequence[JournalRow]) -> None:
        """Write records of the journal."""
        self._storage.write_journal_rows(self._identity.project_id, rows)

    def journal_rows(self, number_max: int) -> Sequence[JournalRow]:
        """Return the records of the journal up to a number."""
        return self._storage.read_journal_rows(self._identity.project_id, number_max)

    def load(self, change: ChangeSet) -> None:
        """Load stored records into memory."""
        self.is_new = False
        super().load(change)


def load_projects(registry: Registry, storage: SqlStorage, state: StoredState, *, sets_aside: bool) -> None:
    """Load all projects into a registry; set damaged ones aside, or refuse the whole state.

    Raises:
        StateRefused: the rows are damaged.
    """
    server = state.server
    try:
        ids = Ids(*server.ids) if server.ids is not None else None
        registry.begin(storage, ids, bytes.fromhex(server.salt) if server.salt is not None else None)
        for rows in state.projects:
            try:
                stored = rows.read()
                identity = read_identity(stored.identity)
                if registry.has_digest(identity.key_digest) or registry.find_by_id(identity.project_id):
                    raise Invalid([Violation("identity", "also belongs to another project")])
                create_store, place = storage.create_store, storage.place
                registry.add(resume_project(identity, stored, registry.services, create_store, place))
            except DAMAGES as problem:
                if not sets_aside:
                    raise
                key_digest = read_identity(json.loads(rows.identity)).key_digest
                damaged = DamagedProject(rows.id, key_digest, join_problems(problem))
                registry.set_aside(damaged)
                log.error("%s: project %s is damaged: %s", storage.place, damaged.project_id, damaged.problem)
    except DAMAGES as error:
        raise StateRefused(f"{storage.place} is damaged: {join_problems(error)}") from error
