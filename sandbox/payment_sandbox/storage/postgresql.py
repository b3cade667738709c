"""The state in PostgreSQL: the connection that holds the lock is the place of the writer.

A server asks for the lock on the connection with which it would commit, and reads the state once it has it.
The session ends with the connection, or after six seconds of silence, and the lock with the session.

The lock keeps a second server from writing; it does not prove that none does, for example behind a pooler or
after a failover that lost commits. The proof is the table ``head``. Its one row names the newest commit, and
each transaction ends with an update of that row, which fails, and with it the transaction, unless the row
names the commit that this server made or read last. Opening makes a commit of its own, so that no transaction
of an earlier connection can succeed after the state was read.
"""

import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from math import inf
from selectors import EVENT_READ, DefaultSelector
from threading import Event, Lock
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg

from payment_sandbox.kernel.ids import secret_key
from payment_sandbox.projects.locks import FILE, ranked_lock
from payment_sandbox.projects.project import DROPPED
from payment_sandbox.projects.store import NotStored, StateLost
from payment_sandbox.storage.codec import StateRefused, join_problems
from payment_sandbox.storage.sql import DAMAGES, PUT_VALUE, SqlStorage, Statement, StoredState, read_state

BEAT_SECONDS: Final = 1.0
"""How often an idle connection is asked whether it is alive."""
FRESH_SECONDS: Final = 3.0
"""How long after a question that the database answered calls are answered from memory."""
SILENT_SECONDS: Final = 6
"""How long a session may be silent before the database ends it: longer than answers are fresh."""
LOADING_SECONDS: Final = 60
"""How long it may be silent while the state is read."""
STATEMENT_SECONDS: Final = 4
ANSWER_SECONDS: Final = 5.0  # after which the connection is cut
STATEMENTS_PER_SECOND: Final = 2000  # more of them may take longer
DOUBT_SECONDS: Final = 10.0
"""How long a commit without an answer waits for the state to be read again."""
CONNECT_SECONDS: Final = 5
CLOSE_SECONDS: Final = 0.5
WATCH_SECONDS: Final = 0.25
VERSION_MIN: Final = 140000
LOCK: Final = 0x50617953
FORMAT: Final = 1

OLD_TABLES: Final = (
    "has the tables of payment-sandbox-company, which this version does not read: save each project there "
    "with 'payment-sandbox snapshot', and restore it with 'payment-sandbox restore' into an empty database"
)
OTHER_WRITER: Final = "another server has written to it"
UNKNOWN: Final = "the outcome is unknown: repeat the call with its Idempotency-Key, or read first"

SETTINGS: Final = f"""
    SET search_path = payment_sandbox;
    SET standard_conforming_strings = on;
    SET default_transaction_isolation = 'read committed';
    SET statement_timeout = '{STATEMENT_SECONDS}s';
    SET idle_in_transaction_session_timeout = '{SILENT_SECONDS}s';
    SET idle_session_timeout = '{SILENT_SECONDS}s'
"""
NETWORK_SETTINGS: Final = {  # which some systems lack
    "client_connection_check_interval": "1s",
    "tcp_user_timeout": f"{SILENT_SECONDS}s",
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
}
CREATE: Final = f"""
    CREATE SCHEMA IF NOT EXISTS payment_sandbox;
    CREATE TABLE head (format integer NOT NULL, newest text NOT NULL);
    CREATE TABLE server (name text PRIMARY KEY, body text NOT NULL);
    CREATE TABLE project (
        number bigint PRIMARY KEY,
        id text UNIQUE NOT NULL,
        identity text NOT NULL,
        chosen text NOT NULL DEFAULT '{{}}',
        counters text NOT NULL DEFAULT '{{}}'
    );
    CREATE TABLE record (
        position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        project bigint NOT NULL,
        kind text NOT NULL,
        id text NOT NULL,
        body text NOT NULL,
        UNIQUE (project, kind, id)
    );
    CREATE TABLE history (
        project bigint NOT NULL,
        kind text NOT NULL,
        number bigint NOT NULL,
        body text NOT NULL,
        PRIMARY KEY (project, number)
    );
    INSERT INTO head VALUES ({FORMAT}, '')
"""
PROVE: Final = "UPDATE head SET newest = CASE newest WHEN ? THEN ? END"
"""The proof of one history: null, and therefore refused, unless the newest commit is the known one."""

_translate = lru_cache(lambda statement: statement.replace("?", "%s"))


class _Commit:
    """The statements of one thread, and what became of them."""

    def __init__(self, statements: Sequence[Statement]) -> None:
        self.statements = statements
        self.is_done = self.is_in_doubt = False
        self.failure: NotStored | None = None


class Session(SqlStorage):
    """One connection to the database, from asking for the lock to the loss of the connection."""

    def __init__(
        self,
        address: str,
        seconds: Callable[[], float],
        run_on_thread: Callable[[Callable[[], None]], object],
    ) -> None:
        """Connect; ``seconds`` is a clock that includes the time in which the machine is suspended.

        Raises:
            NotStored: the database cannot be reached.
            StateRefused: it cannot be used.
        """
        super().__init__()
        parts = urlsplit(address)  # for messages, without user, password and options
        self.place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.over = Event()
        """Set once the connection is lost: nothing more is read or written through it."""
        self._seconds = seconds
        self._lock = ranked_lock(FILE)  # for the one that uses the connection
        self._waiting: deque[_Commit] = deque()
        self._server, self._counts = secret_key(), count(1)
        self._newest = ""
        self._heard = -inf  # when the newest question that was answered was asked
        self._late = inf  # when the current one has taken too long
        self._doubt: tuple[str, str] | None = (
            None  # the commit before the one without an answer, and that one
        )
        self._settled = Event()
        self._is_loading = True  # on the thread that would settle what is in doubt
        self._ending = Lock()  # for the one that closes or cuts the connection
        self.newest_before = ""
        """The newest commit when the state was read."""
        self._newest_read: str | None = None  # the same of the next session
        self._connection = self._connect(address)
        self._selector = DefaultSelector()
        self._selector.register(self._connection.fileno(), EVENT_READ)
        run_on_thread(self._watch)
        try:
            with self._using():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str) -> "psycopg.Connection[Any]":
        try:
            return psycopg.connect(
                address,
                autocommit=True,
                cursor_factory=psycopg.ClientCursor,
                prepare_threshold=None,
                connect_timeout=CONNECT_SECONDS,
                target_session_attrs="read-write",
            )
        except (psycopg.ProgrammingError, UnicodeError) as error:
            raise StateRefused(f"{self.place} cannot be used: {join_problems(error)}") from error
        except psycopg.Error as error:
            raise NotStored(self.place, join_problems(error), is_full=False) from error

    def _prepare(self) -> None:
        """Set the session up, and refuse a database that cannot be used."""
        version = self._connection.info.server_version
        if version < VERSION_MIN:
            major = version // 10000
            raise StateRefused(f"{self.place} is PostgreSQL {major}; 14 or newer is needed")
        if self._ask("SELECT to_regclass('sandbox_migration')")[0][0] is not None:
            raise StateRefused(f"{self.place} {OLD_TABLES}")
        self._ask(SETTINGS)
        for name, value in NETWORK_SETTINGS.items():
            with suppress(psycopg.DatabaseError):
                self._ask("SELECT set_config(?, ?, false)", (name, value))

    def close(self) -> None:
        """Close the connection, which releases the lock."""
        self.over.set()
        if self._lock.acquire(timeout=CLOSE_SECONDS):  # otherwise another thread still waits for an answer
            try:
                with self._ending:
                    self._selector.close()
                    self._connection.close()
            finally:
                self._lock.release()
        else:
            self._cut()

    # The place of the writer

    def try_lock(self) -> bool:
        """Try to become the writer; return False if another server is.

        Raises:
            NotStored: the connection is lost.
        """
        with self._using():
            return bool(self._ask("SELECT pg_try_advisory_lock(?)", (LOCK,))[0][0])

    def open(self) -> StoredState:
        """Read the state, and let no earlier connection write to it from now on; the lock is held.

        Raises:
            NotStored: the connection is lost.
            StateRefused: the state cannot be read.
        """
        with self._using():
            self._ask(f"SET idle_session_timeout = '{LOADING_SECONDS}s'")
            if self._ask("SELECT to_regclass('payment_sandbox.head')")[0][0] is None:
                self._ask(f"{CREATE}; {PUT_VALUE}", ("salt", f'"{secret_key()}"'))
            self._ask(f"BEGIN; SET LOCAL statement_timeout = '{LOADING_SECONDS}s'")
            [(format_number, self.newest_before)] = self._ask("SELECT format, newest FROM head FOR UPDATE")
            if format_number > FORMAT:
                raise StateRefused(
                    f"{self.place} was written by a newer version: its format is {format_number}, "
                    f"but this server reads only up to {FORMAT}"
                )
            try:
                state = read_state(lambda query, values: self._ask(query, values, LOADING_SECONDS))
            except DAMAGES as error:
                raise StateRefused(f"{self.place} is damaged: {join_problems(error)}") from error
            self._newest = self._new_commit()
            self._ask("UPDATE head SET newest = ?; COMMIT", (self._newest,))
        self.begin(state)
        return state

    def end_loading(self) -> None:
        """Let the database end the session soon after it falls silent.

        Raises:
            NotStored: the connection is lost.
        """
        with self._using():
            self._ask(f"SET idle_session_timeout = '{SILENT_SECONDS}s'")
        self._is_loading = False

    def is_current(self) -> bool:
        """Whether the memory of this server is the state: the database has answered lately, and said no more.

        The end of the session makes the idle connection readable.
        """
        if self.over.is_set() or self._seconds() - self._heard > FRESH_SECONDS:
            return False
        if self._lock.acquire(blocking=False):
            try:
                has_unread = not self.over.is_set() and bool(self._selector.select(0))
            finally:
                self._lock.release()
            if has_unread:
                self.beat(0.0)
        return not self.over.is_set()

    def beat(self, after_seconds: float = BEAT_SECONDS) -> None:
        """Ask the database for the newest commit, unless it has answered in the last ``after_seconds``."""
        with suppress(NotStored), self._using():
            if self._seconds() - self._heard >= after_seconds:
                newest = self._ask("SELECT newest FROM head")
                if [row[0] for row in newest] != [self._newest]:
                    self.over.set()

    # Transactions

    def run(self, statements: Sequence[Statement]) -> None:
        """Run statements as one transaction, together with those of other threads that wait.

        Raises:
            NotStored: nothing has changed.
            StateLost: it is unknown whether the transaction was committed.
        """
        commit = _Commit(statements)
        self._waiting.append(commit)
        with self._lock:
            if not commit.is_done:
                self._commit_waiting()
        if commit.is_in_doubt:  # the thread holds locks of its project, but none that reading again needs
            commit.failure = self._await_outcome()
        if commit.failure is not None:
            raise commit.failure

    def select(self, query: str, values: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """Return the rows of a query.

        Raises:
            NotStored: the connection is lost.
        """
        with self._using():
            return self._ask(query, values)

    def _commit_waiting(self) -> None:
        """Commit what all threads wait for, as one transaction in one message."""
        group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        failure, is_in_doubt = self._commit([each for commit in group for each in commit.statements])
        for commit in group:
            commit.failure, commit.is_in_doubt, commit.is_done = failure, is_in_doubt, True

    def _commit(self, statements: Sequence[Statement]) -> tuple[NotStored | None, bool]:
        """Run a transaction; return why nothing has changed, and whether the outcome is in doubt."""
        if self.over.is_set():
            return StateLost(DROPPED), False
        before, after = self._newest, self._new_commit()
        proved = [*statements, (PROVE, (before, after))]
        query = ";".join([_translate(statement) for statement, _ in proved])
        values = [value for _, values in proved for value in values]
        try:
            cursor = self._execute(query, values, ANSWER_SECONDS + len(proved) / STATEMENTS_PER_SECOND)
        except psycopg.Error as error:
            if self._is_lost(error):
                self._doubt = before, after
                self.over.set()
                return None, True
            if isinstance(error, psycopg.errors.NotNullViolation) and error.diag.table_name == "head":
                self.over.set()
                return NotStored(self.place, OTHER_WRITER, is_full=False), False
            is_full = isinstance(error, psycopg.errors.DiskFull)
            return NotStored(self.place, _reason(error), is_full=is_full), False
        while cursor.nextset():
            pass
        if not cursor.rowcount:  # somebody has emptied the table
            self.over.set()
            return StateLost(UNKNOWN), False
        self._newest = after
        return None, False

    def settle(self, newest: str) -> None:
        """Settle what is in doubt: another session holds the lock, and has read the newest commit."""
        self._newest_read = newest
        self._settled.set()

    def _await_outcome(self) -> NotStored | None:
        self._settled.wait(0.0 if self._is_loading else DOUBT_SECONDS)
        assert self._doubt is not None, "a commit has no answer"
        before, after = self._doubt
        if self._newest_read == after:
            return None
        if self._newest_read == before:
            return NotStored(self.place, "the connection was lost", is_full=False)
        return StateLost(UNKNOWN)

    def _new_commit(self) -> str:
        return f"{self._server}-{next(self._counts)}"

    # The connection

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Use the connection for what changes no row.

        Raises:
            NotStored: the connection is lost.
        """
        with self._lock:
            if self.over.is_set():
                raise StateLost(DROPPED)
            try:
                yield
            except psycopg.Error as error:
                if self._is_lost(error):
                    self.over.set()
                raise NotStored(self.place, _reason(error), is_full=False) from error

    def _ask(
        self, query: str, values: Sequence[Any] = (), seconds: float = ANSWER_SECONDS
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query, or nothing; the caller holds the lock."""
        cursor = self._execute(_translate(query), values or None, seconds)
        return cursor.fetchall() if cursor.description else []

    def _execute(self, query: str, values: Sequence[Any] | None, seconds: float) -> "psycopg.Cursor[Any]":
        asked = self._seconds()
        self._late = asked + seconds
        try:
            cursor = self._connection.execute(query, values)
        except psycopg.Error as error:
            if not self._is_lost(error):
                self._heard = asked
            raise
        finally:
            self._late = inf
        self._heard = asked
        return cursor

    def _is_lost(self, error: psycopg.Error) -> bool:
        """Whether an error leaves no connection: then the effect of what was sent is in doubt."""
        return self._connection.closed or error.diag.severity_nonlocalized not in (None, "ERROR")

    def _watch(self) -> None:
        """Cut the connection when an answer takes too long: the database may hang, or be cut off."""
        while not self.over.wait(WATCH_SECONDS):
            if self._seconds() > self._late:
                self._late = inf
                self._cut()

    def _cut(self) -> None:
        with self._ending, suppress(OSError, psycopg.Error):
            channel = socket.socket(fileno=self._connection.fileno())
            try:
                channel.shutdown(socket.SHUT_RDWR)
            finally:
                channel.detach()


def _reason(error: psycopg.Error) -> str:
    return join_problems(error.diag.message_primary or error)
