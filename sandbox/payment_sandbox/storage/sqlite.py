"""An SQLite file for all projects; every acknowledged change survives the end of the process."""

import json
import logging
import os
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.loading import lazy
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.locks import FILE, ranked_lock
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.store import JournalRow, Store
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.storage.codec import NotStored, ServerRows, StateRefused, decode, join_problems
from payment_sandbox.storage.journal_rows import RECORDS_MAX
from payment_sandbox.storage.rows import (
    RowChanges,
    RowStore,
    StoredProject,
    encode_id_generator,
    encode_identity,
    read_identity,
    resume_project,
)

if TYPE_CHECKING:
    import fcntl
else:
    fcntl = lazy("fcntl")

APPLICATION_ID: Final = 0x50617953  # "PayS", in the header of every state file
FORMAT_VERSION: Final = 4
HEADER: Final = b"SQLite format 3\0"
HEADER_BYTES: Final = 100
VERSION_BYTES: Final = slice(60, 64)
APPLICATION_ID_BYTES: Final = slice(68, 72)
OLDEST_FORMAT_VERSION: Final = 2
HISTORY_TABLE: Final = """
    CREATE TABLE history (
        project INTEGER NOT NULL,
        kind TEXT NOT NULL,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (project, number)
    ) WITHOUT ROWID
"""
CREATE_TABLES: Final = f"""
    PRAGMA journal_mode = OFF;  -- if it fails, the whole file is discarded
    BEGIN;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {FORMAT_VERSION};
    CREATE TABLE server (name TEXT PRIMARY KEY, body TEXT NOT NULL);
    CREATE TABLE project (
        number INTEGER PRIMARY KEY,
        id TEXT UNIQUE NOT NULL,
        identity TEXT NOT NULL,
        chosen TEXT NOT NULL DEFAULT '{{}}',
        counters TEXT NOT NULL DEFAULT '{{}}'
    );
    CREATE TABLE record (
        position INTEGER PRIMARY KEY,
        project INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (project, kind, id)
    );
    {HISTORY_TABLE};
    COMMIT;
"""
MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {3: (HISTORY_TABLE,), 4: ()}
"""Migrations, each from one version of the file to the next; version 4 adds answers to the records."""

log = logging.getLogger(__name__)


class LockedFile:
    """A file locked by one server until its process ends; a missing or empty file is initialised.

    The lock is taken before the file is inspected; SQLite's own lock would come too late.
    """

    def __init__(self, path: Path) -> None:
        """Lock the file.

        Raises:
            StateRefused: another server holds the file.
        """
        self._descriptor = _lock_current_file(path)
        try:
            if not path.stat().st_size:
                self._initialise(path)
        except BaseException:
            self.release()
            raise

    def _initialise(self, path: Path) -> None:
        """Replace the empty file with an initialised file, which is locked before it becomes visible."""
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)  # a killed server's temporary file; the lock excludes running servers
        descriptor = _lock(part, os.O_CREAT | os.O_EXCL)
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as database:
                database.executescript(CREATE_TABLES)
            part.replace(path)
        except BaseException:
            _close(descriptor)
            part.unlink(missing_ok=True)
            raise
        self.release()
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock."""
        _close(self._descriptor)


def _lock_current_file(path: Path) -> int | None:
    """Lock the file at the path, and retry if another server has replaced it meanwhile."""
    while True:
        descriptor = _lock(path, os.O_CREAT)
        if descriptor is None:
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        _close(descriptor)


def _lock(path: Path, flags: int) -> int | None:
    """Open and lock a file; None on systems without such locks, where SQLite's own lock must suffice."""
    descriptor = os.open(path, os.O_RDWR | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise StateRefused(f"{path} is in use by another server") from None
    return descriptor


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def refuse_foreign(path: Path) -> None:
    """Refuse a file written by another program or version.

    Raises:
        StateRefused: the error states the reason.
    """
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header.startswith(HEADER) or int.from_bytes(header[APPLICATION_ID_BYTES]) != APPLICATION_ID:
        raise StateRefused(f"{path} is not a state file of this sandbox")
    version = int.from_bytes(header[VERSION_BYTES])
    if version > FORMAT_VERSION:
        raise StateRefused(
            f"{path} was written by a newer version: its format is {version}, "
            f"but this server reads only up to {FORMAT_VERSION}"
        )
    if version < OLDEST_FORMAT_VERSION:
        raise StateRefused(
            f"{path} was written by an older version: its format is {version}, "
            f"but this server reads only {OLDEST_FORMAT_VERSION} and later"
        )


def migrate(database: sqlite3.Connection) -> None:
    """Migrate a file to this version, atomically."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == FORMAT_VERSION:
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        for number in range(version + 1, FORMAT_VERSION + 1):
            for statement in MIGRATIONS[number]:
                database.execute(statement)
        database.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def read_copy(path: Path) -> tuple[ServerRows, list[StoredProject]]:
    """Check a copy of the file, because opening a damaged file could change it."""
    with TemporaryDirectory(prefix="payment-sandbox-") as folder:
        copy = Path(folder) / "state"
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        try:
            with closing(sqlite3.connect(copy, isolation_level=None)) as database:
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StateRefused(f"{path} is damaged: {join_problems(verdict)}")
                migrate(database)
                return _read_projects(database)
        except (sqlite3.Error, Invalid, ValueError, TypeError, KeyError, RecursionError) as error:
            raise StateRefused(f"{path} is damaged: {join_problems(error)}") from error


def _read_projects(database: sqlite3.Connection) -> tuple[ServerRows, list[StoredProject]]:
    values = {name: json.loads(body) for name, body in database.execute("SELECT name, body FROM server")}
    server: ServerRows = decode(ServerRows, values, "server")
    strays = "SELECT count(*) FROM record WHERE project NOT IN (SELECT number FROM project)"
    if stray := database.execute(strays).fetchone()[0]:
        raise ValueError(f"{stray} records belong to no project")
    query = "SELECT number, identity, chosen, counters FROM project ORDER BY number"
    records = "SELECT kind, body FROM record WHERE project = ? ORDER BY position"
    newest = "SELECT max(number) FROM history WHERE project = ?"
    return server, [
        StoredProject.read(
            identity,
            chosen,
            counters,
            database.execute(records, (number,)),
            database.execute(newest, (number,)).fetchone()[0],
        )
        for number, identity, chosen, counters in database.execute(query).fetchall()
    ]


WAL_PAGES: Final = 500
"""Pages in the write-ahead log after which a commit copies them to the file, for small disks."""
WAL_BYTES: Final = 4096 * WAL_PAGES
"""The size to which the log shrinks after a larger commit, such as that of a snapshot."""


def open_database(path: Path) -> sqlite3.Connection:
    """Open the server's connection; a commit returns once the operating system has the data."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in (
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        f"wal_autocheckpoint = {WAL_PAGES}",
        f"journal_size_limit = {WAL_BYTES}",
    ):
        database.execute(f"PRAGMA {pragma}")
    with suppress(sqlite3.OperationalError):  # the disk may be too full to copy the log of a killed server
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


PUT_RECORD: Final = """
    INSERT INTO record (project, kind, id, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body
"""
DELETE_RECORD: Final = "DELETE FROM record WHERE project = ? AND kind = ? AND id = ?"
PUT_VALUE: Final = "INSERT OR REPLACE INTO server VALUES (?, ?)"
PUT_HISTORY: Final = "INSERT OR REPLACE INTO history (project, kind, number, body) VALUES (?, ?, ?, ?)"
SELECT_HISTORY: Final = """
    SELECT kind, number, body FROM history WHERE project = ? AND number <= ? ORDER BY number
"""
UPDATE_PROJECT: Final = """
    UPDATE project SET chosen = coalesce(?, chosen), counters = coalesce(?, counters) WHERE number = ?
"""
CLEAR_PROJECT: Final = ("DELETE FROM record WHERE project = ?", "DELETE FROM history WHERE project = ?")
"""Statements to start a new epoch of a project."""
DELETE_OLD_HISTORY: Final = f"""
    DELETE FROM history
    WHERE project = ?1 AND number < (SELECT max(number) FROM history WHERE project = ?1) - {RECORDS_MAX}
"""


class StateFile:
    """The file's connection for all projects of a server; each change set is one transaction.

    A commit returns once the operating system has the data, so that the data survives a crash of the process,
    but perhaps not a crash of the machine.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            StateRefused: the file belongs to another program or version, is damaged, in use, or not writable.
        """
        self.path = path
        self._lock = ranked_lock(FILE)
        try:
            self.path = path = path.resolve()
            if path.exists() and not path.is_file():
                raise StateRefused(f"{self.path} is not a regular file")
            with ExitStack() as on_failure:
                self._locked_file = LockedFile(path)
                on_failure.callback(self._locked_file.release)
                refuse_foreign(path)
                self.server, self.projects = read_copy(path)
                self._database = open_database(path)
                migrate(self._database)
                self._numbers = dict(self._database.execute("SELECT id, number FROM project"))
                on_failure.pop_all()
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StateRefused(f"{self.path} cannot be used: {reason}") from error

    def close(self) -> None:
        """Close the file, so that another server can open it."""
        with self._lock:
            self._database.close()
            self._locked_file.release()

    def create_store(self, project: Project) -> Store:
        """Create the empty store of a project's next epoch."""
        return RowStore(self, project)

    def save_ids(self, ids: Ids) -> None:
        """Save the generator of project identifiers."""
        with self._transaction() as run:
            run.execute(PUT_VALUE, ("ids", encode_id_generator(ids)))

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project with all its records; user-chosen keys are never reused."""
        deleted = sorted({*self.server.deleted, *filter(None, [fixed_key])})
        with self._transaction() as run:
            number = self._numbers.get(project_id)
            for statement in (*CLEAR_PROJECT, "DELETE FROM project WHERE number = ?"):
                run.execute(statement, (number,))
            if fixed_key is not None:
                run.execute(PUT_VALUE, ("deleted", json.dumps(deleted)))
        self.server = self.server._replace(deleted=tuple(deleted))
        self._numbers.pop(project_id, None)

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return key_digest in self.server.deleted

    def write(self, row_changes: RowChanges) -> None:
        """Write a change set of a project, which may be new."""
        project_id = row_changes.identity.project_id
        with self._transaction() as run:
            number = self._numbers.get(project_id) or _insert_project(run, row_changes.identity)
            for statement in CLEAR_PROJECT if row_changes.replaces_all else ():
                run.execute(statement, (number,))
            run.executemany(PUT_RECORD, [(number, *row) for row in row_changes.rows if row.body is not None])
            run.executemany(
                DELETE_RECORD, [(number, row.kind, row.id) for row in row_changes.rows if row.body is None]
            )
            run.execute(UPDATE_PROJECT, (row_changes.chosen, row_changes.counters, number))
        self._numbers[project_id] = number

    def write_journal_rows(self, project_id: str, rows: Sequence[JournalRow]) -> None:
        """Write journal records of a project, and delete the oldest beyond the limit."""
        with self._transaction() as run:
            number = self._numbers.get(project_id)
            if number is not None:  # otherwise the project has been deleted meanwhile
                run.executemany(PUT_HISTORY, [(number, *row) for row in rows])
                run.execute(DELETE_OLD_HISTORY, (number,))

    def read_journal_rows(self, project_id: str, number_max: int) -> Sequence[JournalRow]:
        """Return the records of a journal up to a number, oldest first."""
        values = (self._numbers.get(project_id), number_max)
        with self._transaction("DEFERRED") as run:
            return [JournalRow(*row) for row in run.execute(SELECT_HISTORY, values)]

    @contextmanager
    def _transaction(self, lock: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """Run a transaction; a read-only ``DEFERRED`` transaction takes no lock.

        Raises:
            NotStored: the database refuses the transaction; the error states the reason.
        """
        with self._lock:
            try:
                self._database.execute(f"BEGIN {lock}")
                try:
                    yield self._database
                    self._database.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):  # a full disk may already have ended the transaction
                        self._database.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
                raise NotStored(self.path.name, str(error), is_full=is_full) from error


def _insert_project(run: sqlite3.Connection, identity: Identity) -> int:
    cursor = run.execute(
        "INSERT INTO project (id, identity) VALUES (?, ?)", (identity.project_id, encode_identity(identity))
    )
    return cursor.lastrowid or 0


def restore_registry(
    services: Services, file: StateFile, catalogue: Catalogue, *, ids: Ids | None, clock: str = RUNNING
) -> Registry:
    """Restore a registry with all projects of the file; ``ids`` is the generator for a new file.

    Raises:
        StateRefused: the content of the file cannot be read.
    """
    try:
        registry = Registry(services, file, catalogue, ids=ids, clock=clock)
        if file.server.ids is not None:
            registry.continue_ids(Ids(*file.server.ids))
        for stored in file.projects:
            registry.add(_restore_project(stored, services, file, registry))
    except (Invalid, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise StateRefused(f"{file.path} is damaged: {join_problems(error)}") from error
    return registry


def _restore_project(
    stored: StoredProject, services: Services, file: StateFile, registry: Registry
) -> Project:
    identity = read_identity(stored.identity)
    if registry.has_digest(identity.key_digest) or registry.find_by_id(identity.project_id) is not None:
        raise Invalid([Violation("identity", "also belongs to another project")])
    return resume_project(identity, stored, services, file.create_store, file.path)
