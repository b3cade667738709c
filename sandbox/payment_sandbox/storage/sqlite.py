"""An SQLite file that holds all projects: what was acknowledged is in it, whenever the process ends."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, Final

from payment_sandbox.projects.store import ChangeSet, MemoryStore, StateRefused
from payment_sandbox.storage.codec import encode
from payment_sandbox.storage.sqlite_opening import (
    CREDENTIAL,
    DELIVERY,
    DUE,
    ORDER,
    QR_REQUEST,
    held_alone,
    make,
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

    Its lock is a leaf: nothing else is taken while it is held. A transaction is written to the operating
    system before the lock is released, so it outlives the process, though perhaps not the machine.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            StateRefused: it is another program's, another version's, damaged, in use, or cannot be written.
        """
        self.path = path
        self._lock = RLock()
        self._depth = 0
        self._numbers: dict[str, int] = {}  # of the projects that are still there
        self._is_reading = False
        self._begun: list[KeptStore] = []  # stores whose first commit is in the transaction under way
        try:
            self.path = path = path.resolve()
            if path.exists() and not path.is_file():
                raise StateRefused(f"{self.path} is no regular file")
            if not path.exists() or not path.stat().st_size:
                make(path)
            self._held = held_alone(path)
            refuse_foreign(path)
            self.server, self.projects = read_copy(path)
            self._database = opened(path)
        except (sqlite3.Error, OSError) as error:
            problem = getattr(error, "strerror", None) or error
            raise StateRefused(f"{self.path} cannot be used: {problem}") from error
        self._numbers = dict(self._database.execute("SELECT id, number FROM project"))

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()
            os.close(self._held)

    @contextmanager
    def together(self) -> Iterator[None]:
        """One transaction for all that is written inside."""
        with self._lock:
            if not self._depth:
                self._database.execute("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
                if self._depth == 1:
                    self._database.execute("COMMIT")
            except BaseException:
                if self._depth == 1:
                    self._take_back()
                raise
            else:
                if self._depth == 1:
                    self._begun.clear()
            finally:
                self._depth -= 1

    def _take_back(self) -> None:
        """Nothing of this transaction is in the file, so epochs that began in it have not begun there."""
        for store in self._begun:
            store.is_new = True
        self._begun.clear()
        with suppress(sqlite3.Error):  # a full disk has ended the transaction already
            self._database.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While projects come back from the file, nothing is written to it."""
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = False

    def store(self, project_id: str) -> "KeptStore":
        """The store of a project's new epoch."""
        return KeptStore(self, project_id, is_new=not self._is_reading)

    def put_server(self, name: str, body: Any) -> None:
        """Keep something of the server as a whole."""
        with self.together():
            self._database.execute("INSERT OR REPLACE INTO server VALUES (?, ?)", (name, json.dumps(body)))

    def add(self, project_id: str, identity: Mapping[str, Any]) -> None:
        """Make room for a project."""
        with self.together():
            made = self._database.execute(
                "INSERT INTO project (id, identity) VALUES (?, ?)", (project_id, json.dumps(identity))
            )
            self._numbers[project_id] = made.lastrowid or 0

    def forget(self, project_id: str) -> None:
        """Drop a project and all that it holds; what still works for it writes nothing any more."""
        with self.together():
            number = self._numbers.pop(project_id)
            self._database.execute("DELETE FROM record WHERE project = ?", (number,))
            self._database.execute("DELETE FROM project WHERE number = ?", (number,))

    def write(self, project_id: str, change: ChangeSet, store: "KeptStore") -> None:
        """Write a change set; of a new store, the project's records of before are gone with it."""
        number = self._numbers.get(project_id)
        if number is None or self._is_reading:
            return
        run = self._database
        with self.together():
            if store.is_new:
                self._begun.append(store)
                store.is_new = False
                run.execute("DELETE FROM record WHERE project = ?", (number,))
            run.executemany(PUT, [(number, *row) for row in _rows(change)])
            run.executemany(DROP, [(number, DUE, str(sequence)) for sequence in change.done])
            for column, state in (("config", change.config), ("running", change.running)):
                if state is not None:
                    run.execute(
                        f"UPDATE project SET {column} = ? WHERE number = ?",
                        (json.dumps(encode(state)), number),
                    )

    def drop(self, project_id: str, kind: str, ids: Iterable[str]) -> None:
        """Drop some records."""
        number = self._numbers.get(project_id)
        with self.together():
            self._database.executemany(DROP, [(number, kind, item_id) for item_id in ids])


class KeptStore(MemoryStore):
    """Reads from memory; every commit is in the file before it is in memory."""

    is_durable = True

    def __init__(self, file: StateFile, project_id: str, *, is_new: bool) -> None:
        super().__init__()
        self._file = file
        self._project_id = project_id
        self.is_new = is_new

    def commit(self, change: ChangeSet) -> None:
        """Write it, then swap in the new versions."""
        self._file.write(self._project_id, change, self)
        self.take(change)
        gone = self.drop_deliveries()
        if gone:
            self._file.drop(self._project_id, DELIVERY, gone)


def _rows(change: ChangeSet) -> Iterator[tuple[str, str, str]]:
    """Kind, identifier and body of every record in a change set."""
    records: tuple[tuple[str, Iterable[tuple[str, Any]]], ...] = (
        (ORDER, change.orders.items()),
        (CREDENTIAL, ((found.vault_token, found) for found in change.credentials)),
        (QR_REQUEST, ((found.id, found) for found in change.qr_requests)),
        (DELIVERY, ((found.id, found) for found in (*change.deliveries, *change.touched))),
        (DUE, ((str(due.sequence), (due.at, due.sequence, due.item)) for due in change.dues)),
    )
    for kind, items in records:
        for item_id, record in items:
            yield kind, item_id, json.dumps(encode(record))
