"""Connections to a PostgreSQL database, with timeouts enforced by the client."""

import os
import select
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from threading import Condition, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import psycopg
from psycopg import ClientCursor, Connection, errors
from psycopg.generators import execute
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg_pool import ConnectionPool

from payment_sandbox.storage.codec import NotStored, StateRefused, join_problems
from payment_sandbox_company.schema import migrate

STATEMENT_SECONDS: Final = 5.0
START_SECONDS: Final = 10  # timeout for the first connection
CONNECT_SECONDS: Final = 4
POOL_SECONDS: Final = 5.0  # the wait for a connection from the pool
CONNECTIONS_MAX: Final = 16

Row = tuple[Any, ...]
Values = Mapping[str, Any] | Sequence[Any]
CONVERTERS: Final[Mapping[int, Callable[[str], Any]]] = {16: "t".__eq__, 20: int, 23: int}
"""Converters of values by type number: booleans and integers; all other types are text."""


class Unavailable(NotStored):
    """The database does not answer in time, or refuses statements; nothing has changed."""


class Watchdog:
    """Cuts connections that do not answer in time.

    A timeout enforced by the database would never fire if the server hangs or the network drops packets.
    """

    EVERY_SECONDS: Final = 0.25

    def __init__(self, monotonic_seconds: Callable[[], float]) -> None:
        self._monotonic_seconds = monotonic_seconds
        self._changed = Condition()
        self._watched: dict[int, tuple[float, Connection[Any]]] = {}
        self._thread: Thread | None = None
        self._is_stopped = False

    @contextmanager
    def limit_time(self, connection: "Connection[Any]", seconds: float) -> Iterator[None]:
        """Cut the connection if the context takes longer than ``seconds``."""
        with self._changed:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="database-watchdog", daemon=True)
                self._thread.start()
            if not self._watched:
                self._changed.notify()
            self._watched[id(connection)] = (self._monotonic_seconds() + seconds, connection)
        try:
            yield
        finally:
            with self._changed:
                self._watched.pop(id(connection), None)

    def stop(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._is_stopped:
                self._changed.wait(self.EVERY_SECONDS if self._watched else None)
                now = self._monotonic_seconds()
                for number, (until, connection) in list(self._watched.items()):
                    if until < now:
                        del self._watched[number]
                        _cut(connection)


def _cut(connection: "Connection[Any]") -> None:
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as channel:
        channel.shutdown(socket.SHUT_RDWR)


def _refuse_closed(connection: "Connection[Any]") -> None:
    """Refuse an idle connection with unread input, which means that the server has closed it.

    Raises:
        OperationalError: the database has closed the connection.
    """
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    if poll.poll(0):
        connection.close()  # otherwise the pool would lend this connection again
        raise psycopg.OperationalError("the database has closed the connection")


class Connections:
    """A pool of connections to one database."""

    def __init__(self, address: str, monotonic_seconds: Callable[[], float]) -> None:
        """Connect, migrate the schema, and open the pool.

        Raises:
            StateRefused: the database cannot be used; the message states the reason.
        """
        self.address = without_password(address)
        self.watchdog = Watchdog(monotonic_seconds)
        kwargs = {"autocommit": True, "prepare_threshold": None, "connect_timeout": CONNECT_SECONDS}
        try:
            with psycopg.connect(address, autocommit=True, connect_timeout=START_SECONDS) as connection:
                migrate(connection)
        except (psycopg.Error, UnicodeError) as error:
            raise StateRefused(f"{self.address} cannot be used: {reason(error)}") from error
        self._pool = ConnectionPool(
            address,
            kwargs=kwargs,
            min_size=1,
            max_size=CONNECTIONS_MAX,
            timeout=POOL_SECONDS,
            check=_refuse_closed,
            reconnect_timeout=POOL_SECONDS,  # after that, the next request reconnects
            open=True,
        )

    def close(self) -> None:
        """Close all connections."""
        self.watchdog.stop()
        self._pool.close(timeout=1.0)

    @contextmanager
    def borrow(self) -> Iterator["Connection[Any]"]:
        """Borrow a connection from the pool; at the end, roll back an uncommitted transaction."""
        connection = self._pool.getconn()
        try:
            yield connection
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.rollback()
            self._pool.putconn(connection)

    def execute(
        self, statements: str, values: Values = (), seconds: float = STATEMENT_SECONDS
    ) -> list[list[Row]]:
        """Send statements together; return the rows of each statement with rows.

        Raises:
            psycopg.Error: a statement or the connection failed.
        """
        with closing(Executor(self)) as executor:
            return executor.execute(statements, values, seconds)

    def rows(self, statements: str, values: Values = (), seconds: float = STATEMENT_SECONDS) -> list[Row]:
        """Run reads or idempotent writes; return the rows of the first statement that returns any.

        Raises:
            NotStored: the database does not answer, or refuses the statement.
        """
        with self.translate_errors():
            return next(iter(self.execute(statements, values, seconds)), [])

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Convert errors from statements that changed nothing to ``NotStored``."""
        try:
            yield
        except psycopg.Error as error:
            raise self.convert_error(error) from error

    def convert_error(self, error: psycopg.Error) -> NotStored:
        """Convert an error from a statement that changed nothing."""
        if isinstance(error, errors.UniqueViolation):
            return Unavailable(self.address, "another server is executing the same request", is_full=False)
        if isinstance(error, errors.DiskFull):
            return NotStored(self.address, reason(error), is_full=True)
        return Unavailable(self.address, reason(error), is_full=False)


class Executor:
    """Executes statements on one connection, bypassing the driver's slow cursors."""

    def __init__(self, connections: Connections) -> None:
        self._limit_time = connections.watchdog.limit_time
        self._on_close = ExitStack()
        self._connection: Connection[Any] = self._on_close.enter_context(connections.borrow())

    def execute(self, statements: str, values: Values, seconds: float = STATEMENT_SECONDS) -> list[list[Row]]:
        """Send statements together; return the rows of each statement with rows.

        Raises:
            psycopg.Error: a statement or the connection failed.
        """
        connection, encoding = self._connection, self._connection.info.encoding
        query = ClientCursor(connection).mogrify(statements, values)
        with self._limit_time(connection, seconds):
            connection.pgconn.send_query(query.encode(encoding))
            results = connection.wait(execute(connection.pgconn))
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise errors.error_from_result(result, encoding)
        return [_rows(result, encoding) for result in results if result.status == ExecStatus.TUPLES_OK]

    def close(self) -> None:
        """Return the connection; roll back an uncommitted transaction."""
        self._on_close.close()


def _rows(result: PGresult, encoding: str) -> list[Row]:
    columns = [(number, CONVERTERS.get(result.ftype(number), str)) for number in range(result.nfields)]
    return [
        tuple(
            None if (value := result.get_value(row, number)) is None else convert(value.decode(encoding))
            for number, convert in columns
        )
        for row in range(result.ntuples)
    ]


def reason(error: Exception) -> str:
    """Return a database error as one line, without the password."""
    return join_problems(getattr(getattr(error, "diag", None), "message_primary", None) or error)


def without_password(address: str) -> str:
    """Return the address of a database without its password, for messages."""
    parts = urlsplit(address)
    if not parts.password:
        return address.partition("?")[0]
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{parts.username}@{host}{parts.path}"
