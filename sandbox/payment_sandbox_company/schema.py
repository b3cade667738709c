"""The tables of the PostgreSQL database, as numbered migrations applied by a server at its start.

Servers with different schema versions never share a database: a migration waits until all servers have ended,
and an older server refuses to start after it.
"""

from contextlib import suppress
from typing import Any, Final, NamedTuple

from psycopg import Connection, errors

from payment_sandbox.storage.codec import StateRefused
from payment_sandbox_company.project_rows import CLAIM_SECONDS


class Migration(NamedTuple):
    """A step from one version of the schema to the next."""

    number: int
    statements: tuple[str, ...]


MIGRATIONS: Final = (
    Migration(
        3,
        (
            """
            CREATE TABLE sandbox_server (
                id text PRIMARY KEY,
                url text NOT NULL,
                version text NOT NULL,
                is_draining boolean NOT NULL DEFAULT false,
                projects integer NOT NULL DEFAULT 0,
                started_at timestamptz NOT NULL DEFAULT now(),
                seen_at timestamptz NOT NULL DEFAULT now()
            )
            """,
            """
            CREATE TABLE sandbox_project (
                id text PRIMARY KEY,
                position bigint GENERATED ALWAYS AS IDENTITY,
                key_digest text NOT NULL UNIQUE,
                identity text NOT NULL,
                chosen text NOT NULL DEFAULT '{}',
                counters text NOT NULL DEFAULT '{}',
                version bigint NOT NULL DEFAULT 0,
                last text NOT NULL DEFAULT '',
                complete_from bigint NOT NULL DEFAULT 0,
                courier text,
                courier_until timestamptz,
                clock_holder text,
                clock_until timestamptz,
                attend_at timestamptz,
                watched_until timestamptz,
                used_at timestamptz NOT NULL DEFAULT now(),
                unused_seconds_max double precision
            )
            """,
            "CREATE INDEX ON sandbox_project (attend_at) WHERE attend_at IS NOT NULL",
            "CREATE INDEX ON sandbox_project (used_at) WHERE unused_seconds_max IS NOT NULL",
            """
            CREATE TABLE sandbox_record (
                project text NOT NULL REFERENCES sandbox_project ON DELETE CASCADE,
                kind text NOT NULL,
                id text NOT NULL,
                position bigint GENERATED ALWAYS AS IDENTITY,
                version bigint NOT NULL,
                body text,
                PRIMARY KEY (project, kind, id)
            )
            """,
            "CREATE INDEX ON sandbox_record (project, version)",
            """
            CREATE TABLE sandbox_request (
                project text NOT NULL,
                id text NOT NULL,
                part integer NOT NULL,
                version bigint NOT NULL,
                made_at timestamptz NOT NULL DEFAULT now(),
                answer text,
                PRIMARY KEY (project, id, part)
            )
            """,
            "CREATE INDEX ON sandbox_request (made_at)",
            """
            CREATE TABLE sandbox_history (
                project text NOT NULL REFERENCES sandbox_project ON DELETE CASCADE,
                number bigint NOT NULL,
                kind text NOT NULL,
                server text NOT NULL,
                made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                body text NOT NULL,
                PRIMARY KEY (project, number)
            )
            """,
            "CREATE INDEX ON sandbox_history (project, made_at)",
            """
            CREATE TABLE sandbox_event (
                position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                project text NOT NULL,
                server text NOT NULL,
                made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
                kind text NOT NULL,
                data text NOT NULL
            )
            """,
            "CREATE INDEX ON sandbox_event (made_at)",
            """
            CREATE TABLE sandbox_note (
                name text PRIMARY KEY,
                made_at timestamptz NOT NULL DEFAULT now(),
                body text NOT NULL
            )
            """,
            "CREATE TABLE sandbox_value (name text PRIMARY KEY, body text NOT NULL)",
            "CREATE TABLE sandbox_deleted_key (digest text PRIMARY KEY)",
        ),
    ),
    # answers to requests with a key become records, which older servers cannot read
    Migration(4, ("ALTER TABLE sandbox_project ADD COLUMN epoch_version bigint NOT NULL DEFAULT 0",)),
    # the events of a project have the same numbers at every server
    Migration(
        5,
        (
            "ALTER TABLE sandbox_project DROP COLUMN watched_until",
            "DROP TABLE sandbox_event",
            """
            CREATE TABLE sandbox_event (
                project text NOT NULL REFERENCES sandbox_project ON DELETE CASCADE,
                number bigint NOT NULL,
                kind text NOT NULL,
                data text NOT NULL,
                PRIMARY KEY (project, number)
            )
            """,
        ),
    ),
)

NEWEST_VERSION: Final = MIGRATIONS[-1].number
CREATE_MIGRATIONS: Final = """
    CREATE TABLE IF NOT EXISTS sandbox_migration (
        number integer PRIMARY KEY,
        works_with integer NOT NULL,
        made_at timestamptz NOT NULL DEFAULT now()
    )
"""


def migrate(connection: "Connection[Any]") -> None:
    """Apply the missing migrations; another starting server waits.

    Raises:
        StateRefused: the schema belongs to a newer version, or older servers are running.
    """
    if _version(connection) is None:
        with suppress(errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
            connection.execute(CREATE_MIGRATIONS)  # another server may create it at the same time
    if _missing_migrations(connection):
        with connection.transaction():  # a read before the lock would risk a deadlock
            connection.execute("LOCK TABLE sandbox_migration IN ACCESS EXCLUSIVE MODE")
            _refuse_older_servers(connection)
            for migration in _missing_migrations(connection):
                for statement in migration.statements:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO sandbox_migration (number, works_with) VALUES (%(number)s, %(number)s)",
                    {"number": migration.number},
                )
    version = _version(connection) or 0
    if version > NEWEST_VERSION:
        raise StateRefused(
            f"the tables in this database belong to a newer version and have schema version {version}, "
            f"but this server supports {NEWEST_VERSION}; upgrade this server"
        )


def _refuse_older_servers(connection: "Connection[Any]") -> None:
    if not _version(connection):
        return
    running = connection.execute(f"""
        SELECT string_agg(url || ' (version ' || version || ')', ', ') FROM sandbox_server
        WHERE seen_at > now() - interval '{CLAIM_SECONDS} seconds'
    """).fetchone()
    if running is not None and running[0] is not None:
        raise StateRefused(
            f"older servers use this database: {running[0]}; servers of different versions never share a "
            f"database, so stop them first, and wait {CLAIM_SECONDS:.0f} seconds after a crash"
        )


def _version(connection: "Connection[Any]") -> int | None:
    """Return the number of the newest migration; None if there is no migrations table."""
    row = connection.execute("SELECT to_regclass('sandbox_migration') IS NOT NULL").fetchone()
    if row is None or not row[0]:
        return None
    newest = connection.execute("SELECT coalesce(max(number), 0) FROM sandbox_migration").fetchone()
    return int(newest[0]) if newest is not None else 0


def _missing_migrations(connection: "Connection[Any]") -> list[Migration]:
    newest = _version(connection) or 0
    return [migration for migration in MIGRATIONS if migration.number > newest]
