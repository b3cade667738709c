"""A PostgreSQL of the tests' own, in a temporary folder, with a database for each test that wants one."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import glob
from itertools import count
from pathlib import Path
from pwd import getpwnam
from tempfile import mkdtemp
from typing import Any

import psycopg
import pytest

from tests.support.ports import free_port

USER = "postgres"
QUICK = ("fsync=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB")
_numbers = count(1)


CHOSEN = "SANDBOX_TEST_POSTGRES"


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl, which the environment may choose; None where PostgreSQL is missing."""
    if CHOSEN in os.environ:
        return Path(os.environ[CHOSEN])
    folders = [Path(folder) for folder in sorted(glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    on_path = shutil.which("initdb")
    folders += [Path(on_path).parent] if on_path else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


needs_postgres = pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed")


class Postgres:
    """One server; it refuses to run as root, so then it runs as the user postgres."""

    def __init__(self, folder: Path, *settings: str) -> None:
        found = binaries()
        assert found is not None, "PostgreSQL is not installed"
        self._bin = found
        self.folder = folder
        self.data = folder / "data"
        self.port = free_port()
        self._settings = settings
        self._is_root = os.geteuid() == 0
        if self._is_root:
            user = getpwnam(USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
        folder.chmod(0o755)

    def run(self, *command: str) -> None:
        """Run one of its programs."""
        as_user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups") if self._is_root else ()
        done = subprocess.run(
            [*as_user, str(self._bin / command[0]), *command[1:]],
            cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"

    def create(self) -> None:
        """Make its files."""
        self.run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync")

    def follow(self, primary: "Postgres") -> None:
        """Make its files as a standby's of another server, which it follows once it is started."""
        self.run("pg_basebackup", "-D", str(self.data), "-d", primary.address("postgres"), "-R", "--no-sync")

    def promote(self) -> None:
        """Let a standby take writes."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = " ".join(f"-c {setting}" for setting in (*QUICK, *self._settings))
        where = f"-h 127.0.0.1 -p {self.port} -k {self.folder}"
        self.run(
            "pg_ctl",
            "-D",
            str(self.data),
            "-o",
            f"{where} {options}",
            "-l",
            str(self.folder / "log"),
            "-w",
            "start",
        )

    def stop(self, mode: str = "immediate") -> None:
        """Stop it, as in a crash."""
        self.run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def address(self, database: str = "postgres", user: str = USER) -> str:
        """The URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run a statement as its superuser."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """The URL of a database in which nothing is yet."""
        name = f"test{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name)


@contextmanager
def running(*settings: str, following: Postgres | None = None) -> Iterator[Postgres]:
    """A server for as long as this takes, perhaps a standby that is ``following`` another one."""
    folder = Path(mkdtemp(prefix="payment-sandbox-pg-"))
    server = Postgres(folder, *settings)
    try:
        server.create() if following is None else server.follow(following)
        server.start()
        yield server
    finally:
        with suppress(AssertionError, subprocess.TimeoutExpired):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
