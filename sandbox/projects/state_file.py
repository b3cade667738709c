"""An SQLite file that holds all projects: what was acknowledged is in it, whenever the process ends."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, Final, NamedTuple

from sandbox.projects.codec import encode
from sandbox.projects.store import ChangeSet, MemoryStore, StateRefused

APPLICATION_ID: Final = 0x50617953  # "PayS", in the header of every state file
VERSION: Final = 1
HEADER: Final = b"SQLite format 3\0"
HEADER_BYTES: Final = 100
VERSION_AT: Final = slice(60, 64)
APPLICATION_ID_AT: Final = slice(68, 72)
CREATE: Final = f"""
    BEGIN;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {VERSION};
    CREATE TABLE server (name TEXT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE project (
        number INTEGER PRIMARY KEY,
        id TEXT UNIQUE NOT NULL,
        identity TEXT NOT NULL,
        config TEXT NOT NULL DEFAULT '{{}}',
        running TEXT NOT NULL DEFAULT '{{}}'
    );
    CREATE TABLE record (
        position INTEGER PRIMARY KEY,
        project INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (project, kind, id)
    );
    COMMIT;
"""
PUT: Final = (
    "INSERT INTO record (project, kind, id, body) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body"
)
DROP: Final = "DELETE FROM record WHERE project = ? AND kind = ? AND id = ?"

ORDER: Final = "orders"
CREDENTIAL: Final = "credentials"
QR_REQUEST: Final = "qr_requests"
DELIVERY: Final = "deliveries"
DUE: Final = "agenda"


class KeptProject(NamedTuple):
    """One project of the file: who it is, and its state as a snapshot's document."""

    identity: Mapping[str, Any]
    state: dict[str, Any]
    real_at: str | None  # when it was written, for a clock that went on while nobody served


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
        try:
            if not path.exists() or not path.stat().st_size:
                _make(path)
            self._held = _held_alone(path)
            _refuse_foreign(path)
            self.server, self.projects = read_copy(path)
            self._database = _opened(path)
        except (sqlite3.Error, OSError) as error:
            raise StateRefused(f"{path} cannot be used: {error}") from error
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
            except BaseException:
                self._depth -= 1
                if not self._depth:
                    self._database.execute("ROLLBACK")
                raise
            self._depth -= 1
            if not self._depth:
                self._database.execute("COMMIT")

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

    def write(self, project_id: str, change: ChangeSet, *, is_new: bool) -> None:
        """Write a change set; with ``is_new`` the project's records of before are gone."""
        number = self._numbers.get(project_id)
        if number is None or self._is_reading:
            return
        run = self._database
        with self.together():
            if is_new:
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
        self._is_new = is_new

    def commit(self, change: ChangeSet) -> None:
        """Write it, then swap in the new versions."""
        self._file.write(self._project_id, change, is_new=self._is_new)
        self._is_new = False
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


def _make(path: Path) -> None:
    """Make a file that is there whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(FileNotFoundError):
        part.unlink()
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(part, isolation_level=None)) as database:
        database.executescript(CREATE)
    part.replace(path)


def _held_alone(path: Path) -> int:
    """A lock that ends with the process; SQLite's own would be asked for too late."""
    held = os.open(path, os.O_RDWR)
    try:
        import fcntl  # not on every system; elsewhere SQLite's own lock has to do
    except ImportError:
        return held
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise StateRefused(f"{path} is in use by another server") from None
    return held


def _refuse_foreign(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header.startswith(HEADER) or int.from_bytes(header[APPLICATION_ID_AT]) != APPLICATION_ID:
        raise StateRefused(f"{path} is no state file of this sandbox")
    version = int.from_bytes(header[VERSION_AT])
    if version != VERSION:
        raise StateRefused(
            f"{path} was written by another version: its format is {version}, this server reads {VERSION}"
        )


def read_copy(path: Path) -> tuple[dict[str, Any], list[KeptProject]]:
    """Read all of it from a copy, because to open a damaged file is to change it."""
    with TemporaryDirectory(prefix="payment-sandbox-") as folder:
        copy = Path(folder) / "state"
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        try:
            with closing(sqlite3.connect(copy)) as database:
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StateRefused(f"{path} is damaged: {verdict}")
                return _read(database)
        except (sqlite3.Error, ValueError, TypeError, KeyError) as error:
            raise StateRefused(f"{path} is damaged: {error}") from error


def _read(database: sqlite3.Connection) -> tuple[dict[str, Any], list[KeptProject]]:
    server = {name: json.loads(body) for name, body in database.execute("SELECT name, body FROM server")}
    found = []
    query = "SELECT number, identity, config, running FROM project ORDER BY number"
    for number, identity, config, running in database.execute(query).fetchall():
        state: dict[str, Any] = {**json.loads(config), **json.loads(running)}
        state |= {kind: [] for kind in (ORDER, CREDENTIAL, QR_REQUEST, DELIVERY, DUE)}
        rows = database.execute(
            "SELECT kind, body FROM record WHERE project = ? ORDER BY position", (number,)
        )
        for kind, body in rows:
            state[kind].append(json.loads(body))
        state[DUE] = [dict(zip(("at", "sequence", "command"), due, strict=True)) for due in state[DUE]]
        found.append(KeptProject(json.loads(identity), state, state.pop("real_at", None)))
    return server, found


def _opened(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in (
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "wal_autocheckpoint = 8000",
    ):
        database.execute(f"PRAGMA {pragma}")
    return database
