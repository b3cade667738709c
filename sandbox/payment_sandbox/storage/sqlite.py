"""An SQLite file for all projects; every acknowledged change survives the end of the process."""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.locks import FILE, ranked_lock
from payment_sandbox.projects.store import ChangeSet
from payment_sandbox.storage.codec import encode
from payment_sandbox.storage.format import NotStored, StateRefused
from payment_sandbox.storage.memory import MemoryStore
from payment_sandbox.storage.sqlite_file import (
    CREDENTIAL,
    DELIVERY,
    DUE,
    ORDER,
    QR_REQUEST,
    HeldFile,
    opened,
    read_copy,
    refuse_foreign,
)

PUT: Final = (
    "INSERT INTO record (project, kind, id, body) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body"
)
DROP: Final = "DELETE FROM record WHERE project = ? AND kind = ? AND id = ?"


class StateFile:
    """One connection for all projects of a server; each change set is one transaction.

    A commit returns once the operating system has the data, so it survives a crash of the process, but
    perhaps not of the machine.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            StateRefused: it belongs to another program or version, is damaged, in use, or not writable.
        """
        self.path = path
        self._lock = ranked_lock(FILE)
        self._numbers: dict[str, int] = {}  # of the projects in the file
        try:
            self.path = path = path.resolve()
            if path.exists() and not path.is_file():
                raise StateRefused(f"{self.path} is not a regular file")
            self._held = HeldFile(path)
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self.path, error) from error
        try:
            refuse_foreign(path)
            self.server, self.projects = read_copy(path)
            self._database = opened(path)
            self._numbers = dict(self._database.execute("SELECT id, number FROM project"))
        except (sqlite3.Error, OSError) as error:
            self._held.release()
            raise _unusable(self.path, error) from error
        except BaseException:
            self._held.release()
            raise

    def close(self) -> None:
        """Close the file, so that another server can open it."""
        with self._lock:
            self._database.close()
            self._held.release()

    def storage(self, identity: Identity, real: RealTime) -> "SqliteStorage":
        """The storage of one project."""
        return SqliteStorage(self, identity, real)

    def put_server(self, name: str, body: Any) -> None:
        """Save a value of the server as a whole."""
        with self._transaction() as run:
            run.execute("INSERT OR REPLACE INTO server VALUES (?, ?)", (name, json.dumps(body)))

    def remove(self, project_id: str) -> None:
        """Delete a project and everything in it."""
        with self._transaction() as run:
            number = self._numbers.get(project_id)
            run.execute("DELETE FROM record WHERE project = ?", (number,))
            run.execute("DELETE FROM project WHERE number = ?", (number,))
        self._numbers.pop(project_id, None)

    def write(self, store: "SqliteStore", change: ChangeSet, surplus: Iterable[str]) -> None:
        """Write a change set; the first one of a store deletes what an earlier epoch left."""
        project_id = store.identity.project_id
        with self._transaction() as run:
            number = self._numbers.get(project_id) or self._added(run, store.identity)
            if store.is_new:
                run.execute("DELETE FROM record WHERE project = ?", (number,))
            run.executemany(PUT, [(number, *row) for row in _rows(change)])
            run.executemany(DROP, [(number, DUE, str(sequence)) for sequence in change.finished])
            run.executemany(DROP, [(number, DELIVERY, delivery_id) for delivery_id in surplus])
            _write_state(run, number, change, timestamp(store.real.wall_now()))
        self._numbers[project_id] = number

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything written inside, or nothing.

        Raises:
            NotStored: says why.
        """
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # a full disk may already have ended the transaction
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
                raise NotStored(self.path, str(error), is_full=is_full) from error

    def _added(self, run: sqlite3.Connection, identity: Identity) -> int:
        body = {
            **identity._asdict(),
            "start": {
                "mode": identity.start.mode,
                "at": timestamp(identity.start.at) if identity.start.at is not None else None,
            },
        }
        made = run.execute(
            "INSERT INTO project (id, identity) VALUES (?, ?)", (identity.project_id, json.dumps(body))
        )
        return made.lastrowid or 0


class SqliteStorage:
    """Creates the stores of one project, one per epoch."""

    def __init__(self, file: StateFile, identity: Identity, real: RealTime) -> None:
        self._file = file
        self._identity = identity
        self._real = real

    def store(self) -> "SqliteStore":
        """An empty store; its first commit deletes what an earlier epoch left."""
        return SqliteStore(self._file, self._identity, self._real)


class SqliteStore(MemoryStore):
    """Reads from memory; commits go to the file first, then to memory."""

    is_durable = True

    def __init__(self, file: StateFile, identity: Identity, real: RealTime) -> None:
        super().__init__()
        self._file = file
        self.identity = identity
        self.real = real
        self.is_new = True

    def commit(self, change: ChangeSet) -> None:
        """Write it, then swap in the new versions."""
        surplus = self.surplus(change)
        if change.counters is not None:
            dropped = self.deliveries_dropped + len(surplus)
            change = change._replace(counters=change.counters._replace(deliveries_dropped=dropped))
        self._file.write(self, change, surplus)
        self.is_new = False
        self.swap_in(change, surplus)

    def load(self, change: ChangeSet) -> None:
        """Load into memory what is already in the file."""
        self.is_new = False
        self.swap_in(change, [])


def _unusable(path: Path, error: Exception) -> StateRefused:
    return StateRefused(f"{path} cannot be used: {getattr(error, 'strerror', None) or error}")


def _write_state(run: sqlite3.Connection, number: int, change: ChangeSet, real_at: str) -> None:
    if change.chosen is not None:
        run.execute(
            "UPDATE project SET chosen = ? WHERE number = ?", (json.dumps(encode(change.chosen)), number)
        )
    if change.counters is not None:
        counters = {**encode(change.counters), "real_at": real_at}
        run.execute("UPDATE project SET counters = ? WHERE number = ?", (json.dumps(counters), number))


def _rows(change: ChangeSet) -> Iterator[tuple[str, str, str]]:
    """Kind, identifier and body of every record in a change set."""
    records: tuple[tuple[str, Iterable[tuple[str, Any]]], ...] = (
        (ORDER, change.orders.items()),
        (CREDENTIAL, ((found.vault_token, found) for found in change.credentials)),
        (QR_REQUEST, ((found.id, found) for found in change.qr_requests)),
        (DELIVERY, ((found.id, found) for found in change.deliveries)),
        (DUE, ((str(due.sequence), (due.at, due.sequence, due.item)) for due in change.dues)),
    )
    for kind, items in records:
        for item_id, record in items:
            yield kind, item_id, json.dumps(encode(record))
