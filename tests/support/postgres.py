"""A PostgreSQL server for tests in a temporary folder, with a new database for each test."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from pwd import getpwnam
from tempfile import mkdtemp
from typing import Any

import psycopg

from payment_sandbox.serving.realtime import boot_seconds
from payment_sandbox.serving.threads import Threads
from payment_sandbox.storage.postgresql import Session
from tests.support.ports import free_port
from tests.support.tools import find_tool, unavailable

USER = "postgres"
QUICK = ("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB")
_numbers = count(1)
CHOSEN = "SANDBOX_TEST_POSTGRES"
"""The variable with the folder of initdb and pg_ctl, if it is not that of the system."""


class Postgres:
    """A PostgreSQL server; started by root, it runs as the user postgres. Without PostgreSQL, the test is skipped."""

    def __init__(self, folder: Path, *settings: str) -> None:
        initdb = find_tool("postgresql")
        programs = os.environ.get(CHOSEN) or (initdb and Path(initdb).parent)
        if not programs:
            unavailable("not installed: postgresql")
        self._bin = Path(programs)
        self.folder, self.data = folder, folder / "data"
        self.port = free_port()
        self._settings = settings
        self._is_root = os.geteuid() == 0
        if self._is_root:
            user = getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        folder.chmod(0o755)

    def run(self, *command: str) -> None:
        """Run one of the server's programs."""
        as_user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups") if self._is_root else ()
        result = subprocess.run(
            [*as_user, str(self._bin / command[0]), *command[1:]],
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}: {result.stderr}"

    def create(self) -> None:
        """Create the data folder."""
        self.run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        settings = " ".join(f"-c {setting}" for setting in (*QUICK, *self._settings))
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} {settings}"
        self.run("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server, as in a crash by default."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def address(self, database: str = "postgres", user: str = USER) -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement as the superuser."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """Create an empty database; return its URL."""
        name = f"test{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name)


@contextmanager
def open_session(address: str) -> Iterator[Session]:
    """Open the state in a database, as the writer."""
    session = Session(address, boot_seconds, Threads("database").run)
    assert session.try_lock()
    session.open()
    yield session
    session.close()


@contextmanager
def running(*settings: str) -> Iterator[Postgres]:
    """Run a server until the block ends."""
    folder = Path(mkdtemp(prefix="payment-sandbox-pg-"))
    server = Postgres(folder, *settings)
    try:
        server.create()
        server.start()
        yield server
    finally:
        with suppress(AssertionError):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
