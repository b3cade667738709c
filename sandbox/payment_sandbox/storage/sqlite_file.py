"""Opens a state file: creates it atomically, locks it, and checks it before changing it."""

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from payment_sandbox.storage.format import StateRefused, in_one_line

APPLICATION_ID: Final = 0x50617953  # "PayS", in the header of every state file
VERSION: Final = 2
HEADER: Final = b"SQLite format 3\0"
HEADER_BYTES: Final = 100
VERSION_AT: Final = slice(60, 64)
APPLICATION_ID_AT: Final = slice(68, 72)
CREATE: Final = f"""
    PRAGMA journal_mode = OFF;  -- if it fails, the whole file is thrown away
    BEGIN;
    PRAGMA application_id = {APPLICATION_ID};
    PRAGMA user_version = {VERSION};
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
    COMMIT;
"""

ORDER: Final = "orders"
CREDENTIAL: Final = "credentials"
QR_REQUEST: Final = "qr_requests"
DELIVERY: Final = "deliveries"
DUE: Final = "agenda"


class StoredProject(NamedTuple):
    """One project of the file: its identity, and its state as a snapshot document."""

    identity: Mapping[str, Any]
    state: dict[str, Any]
    real_at: str | None  # when it was written; a running clock continues from there


class HeldFile:
    """A file that is one server's until its process ends, made complete if it is missing or empty.

    The lock comes before anybody looks what to do; SQLite's own lock would come too late.
    """

    def __init__(self, path: Path) -> None:
        """Lock the file.

        Raises:
            StateRefused: another server holds it.
        """
        self._descriptor = _claimed(path)
        try:
            if not path.stat().st_size:
                self._fill(path)
        except BaseException:
            self.release()
            raise

    def _fill(self, path: Path) -> None:
        """Put a complete file in the place of the empty one; it is locked before anybody can see it."""
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)  # of a server that was killed: no other one is here
        made = _locked(part, os.O_CREAT | os.O_EXCL)
        try:
            with closing(sqlite3.connect(part, isolation_level=None)) as database:
                database.executescript(CREATE)
            part.replace(path)
        except BaseException:
            _close(made)
            part.unlink(missing_ok=True)
            raise
        self.release()
        self._descriptor = made

    def release(self) -> None:
        """Release the lock."""
        _close(self._descriptor)


def _claimed(path: Path) -> int | None:
    """Lock the file that the path names then: before, another server may have put a new one there."""
    while True:
        descriptor = _locked(path, os.O_CREAT)
        if descriptor is None:
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        _close(descriptor)


def _locked(path: Path, flags: int) -> int | None:
    """Open and lock a file; None where there are no such locks, and SQLite's own one must do."""
    descriptor = os.open(path, os.O_RDWR | flags, 0o600)
    try:
        import fcntl  # not on every system

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
    """Refuse a file that another program or another version wrote.

    Raises:
        StateRefused: says which of the two.
    """
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header.startswith(HEADER) or int.from_bytes(header[APPLICATION_ID_AT]) != APPLICATION_ID:
        raise StateRefused(f"{path} is not a state file of this sandbox")
    version = int.from_bytes(header[VERSION_AT])
    if version != VERSION:
        raise StateRefused(
            f"{path} was written by another version: its format is {version}, this server reads {VERSION}"
        )


def read_copy(path: Path) -> tuple[dict[str, Any], list[StoredProject]]:
    """Read everything from a copy, because opening a damaged file could change it."""
    with TemporaryDirectory(prefix="payment-sandbox-") as folder:
        copy = Path(folder) / "state"
        for suffix in ("", "-wal"):
            with suppress(FileNotFoundError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        try:
            with closing(sqlite3.connect(copy)) as database:
                (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
                if verdict != "ok":
                    raise StateRefused(f"{path} is damaged: {in_one_line(verdict)}")
                return _read(database)
        except (sqlite3.Error, ValueError, TypeError, KeyError, RecursionError) as error:
            raise StateRefused(f"{path} is damaged: {in_one_line(error)}") from error


def _read(database: sqlite3.Connection) -> tuple[dict[str, Any], list[StoredProject]]:
    server = {name: json.loads(body) for name, body in database.execute("SELECT name, body FROM server")}
    found = []
    query = "SELECT number, identity, chosen, counters FROM project ORDER BY number"
    for number, identity, chosen, counters in database.execute(query).fetchall():
        state: dict[str, Any] = {**json.loads(chosen), **json.loads(counters)}
        state |= {kind: [] for kind in (ORDER, CREDENTIAL, QR_REQUEST, DELIVERY, DUE)}
        rows = database.execute(
            "SELECT kind, body FROM record WHERE project = ? ORDER BY position", (number,)
        )
        for kind, body in rows:
            state[kind].append(json.loads(body))
        state[DUE] = [dict(zip(("at", "sequence", "command"), due, strict=True)) for due in state[DUE]]
        found.append(StoredProject(json.loads(identity), state, state.pop("real_at", None)))
    return server, found


def opened(path: Path) -> sqlite3.Connection:
    """The server's connection; a commit returns once the operating system has the data."""
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in (
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "wal_autocheckpoint = 8000",
    ):
        database.execute(f"PRAGMA {pragma}")
    return database
