"""An SQLite file for all projects; every acknowledged change survives the end of the process."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from payment_sandbox.projects.locks import FILE, ranked_lock
from payment_sandbox.projects.store import NotStored
from payment_sandbox.storage.codec import StateRefused, join_problems
from payment_sandbox.storage.sql import DAMAGES, SqlStorage, Statement, StoredState, read_state

if sys.platform != "win32":
    import fcntl

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
    if sys.platform == "win32":
        os.close(descriptor)
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


def read_copy(path: Path) -> StoredState:
    """Check and read a copy of the file, because opening a damaged file could change it.

    Raises:
        StateRefused: the file is damaged.
    """
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
                state = read_state(lambda query, values: database.execute(query, values).fetchall())
                for project in state.projects:
                    project.read()
                return state
        except (sqlite3.Error, *DAMAGES) as error:
            raise StateRefused(f"{path} is damaged: {join_problems(error)}") from error


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


class StateFile(SqlStorage):
    """The file's connection for all projects of a server; each change set is one transaction.

    A commit returns once the operating system has the data, so that the data survives a crash of the process,
    but perhaps not a crash of the machine.
    """

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            StateRefused: the file belongs to another program or version, is damaged, in use, or not writable.
        """
        super().__init__()
        self.path, self.place = path, str(path)
        self._lock = ranked_lock(FILE)
        try:
            self.path = path = path.resolve()
            self.place = str(path)
            if path.exists() and not path.is_file():
                raise StateRefused(f"{path} is not a regular file")
            with ExitStack() as on_failure:
                self._locked_file = LockedFile(path)
                on_failure.callback(self._locked_file.release)
                refuse_foreign(path)
                self.stored = read_copy(path)
                self._database = open_database(path)
                migrate(self._database)
                self.begin(self.stored)
                on_failure.pop_all()
        except (sqlite3.Error, OSError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StateRefused(f"{self.path} cannot be used: {reason}") from error

    def close(self) -> None:
        """Close the file, so that another server can open it."""
        with self._lock:
            self._database.close()
            self._locked_file.release()

    def run(self, statements: Sequence[Statement]) -> None:
        """Run statements as one transaction.

        Raises:
            NotStored: the database refuses the transaction; the error states the reason.
        """
        with self._transaction("IMMEDIATE") as database:
            for statement, values in statements:
                database.execute(statement, values)

    def select(self, query: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return the rows of a query; it takes no lock of the file.

        Raises:
            NotStored: the database refuses the query; the error states the reason.
        """
        with self._transaction("DEFERRED") as database:
            return database.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self, lock: str) -> Iterator[sqlite3.Connection]:
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
