"""A PostgreSQL database shared by any number of servers; it serializes their edits.

No statement needs a session: there are no prepared statements, session settings or advisory locks, so a
pooler in transaction mode works. Statements that belong together are sent as one, in a single round trip.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Event
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.caller import RequestCommit, SavedAnswer
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.registry import AlreadyMade
from payment_sandbox.storage.codec import DamagedProject, NotStored, reading
from payment_sandbox.storage.dialects import (
    CLEAR_PROJECT,
    POSTGRESQL,
    PROJECTS_QUERY,
    RECORD_COLUMNS,
    REPLACE_ON_CONFLICT,
    UPDATED_COLUMNS,
    translate,
)
from payment_sandbox.storage.rows import (
    ProjectColumns,
    Row,
    encode_id_generator,
    encode_identity,
    read_id_generator,
    read_identity,
)
from payment_sandbox_company.batches import Batches
from payment_sandbox_company.cluster_tables import CLAIM_END, ClusterTables, encode_rows, rows_table
from payment_sandbox_company.connections import STATEMENT_SECONDS, Executor, Unavailable, reason
from payment_sandbox_company.project_rows import (
    IDLE_LOCK_SECONDS,
    Changes,
    Head,
    SharedChanges,
    UnknownOutcome,
    commit_name,
)

Result = TypeVar("Result")

ATTEMPTS_MAX: Final = 3  # attempts at a query if connections break
USE_DELAY_SECONDS: Final = 5.0  # the longest delay before a server records that a project was used
OUTCOME_SECONDS: Final = 4.0
RETRY_SECONDS: Final = 0.1
SMALL_COMMIT_ROWS: Final = 1000
CONNECTION_ERRORS: Final = (errors.OperationalError, errors.InternalError)
TOMBSTONE_VERSIONS: Final = 500  # deleted records leave a tombstone for this many versions

HEAD_COLUMNS: Final = """
    version, last, complete_from,
    CASE WHEN courier_until > clock_timestamp() THEN courier END,
    CASE WHEN clock_until > clock_timestamp() THEN clock_holder END, epoch_version
"""
NEWER_COLUMNS: Final = """
    CASE WHEN version <> %(known)s THEN chosen END, CASE WHEN version <> %(known)s THEN counters END
"""
LOCK_PROJECT: Final = f"""
    BEGIN; SET LOCAL lock_timeout = '4s';
    SET LOCAL idle_in_transaction_session_timeout = '{IDLE_LOCK_SECONDS}s';
    SELECT {HEAD_COLUMNS}, {NEWER_COLUMNS} FROM sandbox_project WHERE id = %(id)s FOR UPDATE
"""
SELECT_ROWS: Final = f"""
    SELECT {RECORD_COLUMNS} FROM sandbox_record
    WHERE project = %(id)s AND version > %(known)s ORDER BY position
"""
READ_PROJECT: Final = f"""
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SELECT {HEAD_COLUMNS}, {NEWER_COLUMNS} FROM sandbox_project WHERE id = %(id)s; {SELECT_ROWS}; COMMIT
"""
CLAIM_ASSIGNMENTS: Final = f"""
    courier = %(courier)s,
    courier_until = CASE WHEN %(courier)s = %(me)s THEN {CLAIM_END}
        WHEN %(courier)s IS NOT NULL THEN courier_until END,
    clock_holder = %(clock_holder)s,
    clock_until = CASE WHEN split_part(%(clock_holder)s, ':', 1) = %(me)s THEN {CLAIM_END}
        WHEN %(clock_holder)s IS NOT NULL THEN clock_until END,
    attend_at = LEAST(
        CASE WHEN %(courier)s IS NOT NULL OR %(clock_holder)s IS NOT NULL THEN {CLAIM_END} END,
        clock_timestamp() + (%(due_in_seconds)s::float8 + 0.2) * interval '1 second'
    )
"""
WRITE_CLAIMS: Final = f"UPDATE sandbox_project SET {CLAIM_ASSIGNMENTS} WHERE id = %(id)s; COMMIT"
WRITE_CHANGES: Final = f"""
    WITH own AS (
        UPDATE sandbox_project SET version = version + 1, last = %(last)s,
            epoch_version = CASE WHEN %(replaces_all)s THEN version + 1 ELSE epoch_version END,
            {translate(POSTGRESQL, UPDATED_COLUMNS)}, unused_seconds_max = %(unused_seconds_max)s,
            {CLAIM_ASSIGNMENTS}
        WHERE id = %(id)s AND version = %(version)s AND NOT EXISTS (
            SELECT FROM sandbox_request WHERE project = %(id)s AND id = %(key)s AND answer IS NOT NULL)
        RETURNING id, version
    ), put AS (
        INSERT INTO sandbox_record (project, kind, id, version, body)
        SELECT own.id, new.kind, new.id, own.version, new.body
        FROM own, {rows_table(*Row._fields)} ORDER BY new.place
        {REPLACE_ON_CONFLICT}, version = excluded.version
    ), asked AS (
        INSERT INTO sandbox_request (project, id, part, version, answer)
        SELECT own.id, %(request_id)s, %(part)s, own.version, %(answer)s FROM own
    )
    SELECT version FROM own
"""
FORGET_ANSWERS: Final = "UPDATE sandbox_request SET answer = NULL WHERE project = %(id)s"
PURGE_TOMBSTONES: Final = f"""
    DELETE FROM sandbox_record
    WHERE project = %(id)s AND body IS NULL AND version <= %(version)s - {TOMBSTONE_VERSIONS};
    UPDATE sandbox_project SET complete_from = %(version)s - {TOMBSTONE_VERSIONS} WHERE id = %(id)s
"""
ADD_PROJECT: Final = """
    INSERT INTO sandbox_project (id, key_digest, identity) VALUES (%(id)s, %(key_digest)s, %(identity)s)
    ON CONFLICT DO NOTHING
"""
ADD_VALUE: Final = "INSERT INTO sandbox_value VALUES (%s, %s) ON CONFLICT DO NOTHING"
ADD_DELETED_KEY: Final = "INSERT INTO sandbox_deleted_key VALUES (%s) ON CONFLICT DO NOTHING"


class PostgresSession:
    """A transaction that locks a project's row."""

    def __init__(self, database: "Database", project_id: str, known_version: int) -> None:
        self._database = database
        self._values = {"id": project_id, "known": known_version, "me": database.server_id}
        self._executor = Executor(database)
        try:
            rows = self._executor.execute(LOCK_PROJECT, self._values)[0]
        except BaseException:
            self._executor.close()
            raise
        self.head = Head(*rows[0]) if rows else None

    def changes(self, since: int) -> Changes:
        """Read the changes after a version; no other server can write during the transaction."""
        assert self.head is not None, "the project was deleted"
        with self._database.translate_errors():
            rows = self._executor.execute(
                SELECT_ROWS, {**self._values, "known": since}, 4 * STATEMENT_SECONDS
            )[0]
            head = self.head
            if not since and head.counters is None:  # the first query omits them if the version is known
                query = "SELECT chosen, counters FROM sandbox_project WHERE id = %(id)s"
                chosen, counters = self._executor.execute(query, self._values)[0][0]
                head = head._replace(chosen=chosen, counters=counters)
        return Changes(head, [Row(*row) for row in rows])

    def commit(self, row_changes: SharedChanges) -> int:
        """Write a change set, and commit.

        Raises:
            NotStored: nothing was written.
            UnknownOutcome: the commit may or may not have succeeded.
        """
        assert self.head is not None, "the project was deleted"
        values = {**self._values, **commit_parameters(row_changes), "version": self.head.version}
        statements = [WRITE_CHANGES, "COMMIT"]
        if row_changes.replaces_all:
            statements.insert(0, f"{translate(POSTGRESQL, '; '.join(CLEAR_PROJECT))}; {FORGET_ANSWERS}")
        elif self.head.version % TOMBSTONE_VERSIONS == 0:
            statements.insert(0, PURGE_TOMBSTONES)
        version = self._database.execute_commit(self._executor, "; ".join(statements), values, row_changes)
        if version is None:
            raise NotStored(self._database.address, "another change came first", is_full=False)
        return version

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only the claims, and commit."""
        claims = {"courier": courier, "clock_holder": clock_holder, "due_in_seconds": due_in_seconds}
        with self._database.translate_errors():
            self._executor.execute(WRITE_CLAIMS, {**self._values, **claims})

    def end(self) -> None:
        """Roll back an uncommitted transaction, and unlock the row."""
        self._executor.close()


class Database(ClusterTables):
    """A server's access to the database that a company's servers share."""

    def __init__(self, address: str, server_id: str, real: RealTime) -> None:
        """Connect, and migrate the schema.

        Raises:
            StateRefused: the database cannot be used; the message states the reason.
        """
        super().__init__(address, real.monotonic_seconds)
        self.server_id = server_id
        self.commit_count = 0
        self.generation = 0
        self.real = real
        self._heads: Batches[str, Head | None] = Batches(self._read_heads)

    # Projects

    def begin(self, project_id: str, known_version: int) -> PostgresSession:
        """Lock a project's row.

        Raises:
            NotStored: the database does not answer in time.
        """
        return self._with_retries(lambda: PostgresSession(self, project_id, known_version))

    def head(self, project_id: str) -> Head | None:
        """Return the head of a project; concurrent calls share a query.

        Raises:
            Unavailable: the database does not answer.
        """
        for _ in range(ATTEMPTS_MAX - 1):
            with suppress(Unavailable):
                return self._heads.call(project_id)
        return self._heads.call(project_id)

    def heads(self, project_ids: Sequence[str]) -> dict[str, Head]:
        """Return the heads of several projects, except deleted ones."""
        query = f"SELECT id, {HEAD_COLUMNS} FROM sandbox_project WHERE id = ANY(%(ids)s)"
        return {row[0]: Head(*row[1:]) for row in self.rows(query, {"ids": list(project_ids)})}

    def _read_heads(self, project_ids: Sequence[str]) -> Sequence[Head | None]:
        heads = self.heads(project_ids)
        return [heads.get(project_id) for project_id in project_ids]

    def changes(self, project_id: str, since: int) -> Changes | None:
        """Read the changes after a version, in one snapshot; return None if the project does not exist."""
        values = {"id": project_id, "known": since, "me": self.server_id}
        heads, rows = self._with_retries(lambda: self.execute(READ_PROJECT, values, 4 * STATEMENT_SECONDS))
        return Changes(Head(*heads[0]), [Row(*row) for row in rows]) if heads else None

    def add(self, row_changes: SharedChanges) -> int:
        """Add a project.

        Raises:
            AlreadyMade: another project has this id or key.
            NotStored: nothing was written; the message states the reason.
        """
        identity = row_changes.identity
        own = {"key_digest": identity.key_digest, "identity": encode_identity(identity)}
        values = {**commit_parameters(row_changes), **own, "me": self.server_id, "version": 0}
        with self.translate_errors(), closing(Executor(self)) as executor:
            version = self.execute_commit(
                executor, f"BEGIN; {ADD_PROJECT}; {WRITE_CHANGES}; COMMIT", values, row_changes
            )
        if version is None:
            raise AlreadyMade("another server has just created a project with this key")
        return version

    def execute_commit(
        self, executor: Executor, statements: str, values: Mapping[str, Any], row_changes: SharedChanges
    ) -> int | None:
        """Write and commit; return the new version, or None if nothing was written.

        Raises:
            NotStored: nothing was written.
            UnknownOutcome: the commit may or may not have succeeded.
        """
        try:
            seconds = STATEMENT_SECONDS * (4 if len(row_changes.rows) > SMALL_COMMIT_ROWS else 1)
            versions = executor.execute(statements, values, seconds)[-1]
        except psycopg.Error as error:
            if not self.is_connection_lost(error):
                raise self.convert_error(error) from error
            executor.close()
            return self.find_commit(row_changes, error)
        self.commit_count += bool(versions)
        return int(versions[0][0]) if versions else None

    def find_commit(self, row_changes: SharedChanges, error: psycopg.Error) -> int:
        """Return the version of a commit whose result was lost; the row lock waits until it ends.

        Raises:
            UnknownOutcome: the database does not answer.
            NotStored: the commit failed.
        """
        query = """
            BEGIN; SET LOCAL lock_timeout = '4s';
            SELECT FROM sandbox_project WHERE id = %(id)s FOR UPDATE;
            SELECT version FROM sandbox_request
            WHERE project = %(id)s AND id = %(request_id)s AND part = %(part)s; COMMIT
        """
        until_seconds = self.real.monotonic_seconds() + OUTCOME_SECONDS
        while self.real.monotonic_seconds() < until_seconds:
            try:
                results = self.execute(query, commit_parameters(row_changes))
            except PoolTimeout:
                break
            except psycopg.Error:
                Event().wait(RETRY_SECONDS)
                continue
            if results[-1]:
                self.commit_count += 1
                return int(results[-1][0][0])
            raise self.convert_error(error) from error
        raise UnknownOutcome(self.address, reason(error), row_changes.part.key or row_changes.part.request_id)

    def has_commit(self, project_id: str, version: int, last: str) -> bool:
        """Return whether the database has this commit, which a standby may lack."""
        values = {"id": project_id, "version": version, "last": last}
        with self.translate_errors():
            return bool(self.execute(COUNT_COMMITS, values)[0][0][0])

    def answer(self, project_id: str, request_id: str) -> SavedAnswer | None:
        """Return the answer to an executed request without a key; None if no server has executed it."""
        query = """
            SELECT answer FROM sandbox_request
            WHERE project = %s AND id = %s AND answer IS NOT NULL ORDER BY part LIMIT 1
        """
        for (answer,) in self.rows(query, (project_id, request_id)):
            return SavedAnswer(id=request_id, at=self.real.wall_now(), **json.loads(answer))
        return None

    # The registry

    def identity(self, name: str) -> Identity | None:
        """Return the identity of the project with this id or key digest.

        Raises:
            DamagedProject: the identity cannot be read.
        """
        query = "SELECT id, identity FROM sandbox_project WHERE id = %(name)s OR key_digest = %(name)s"
        for project_id, body in self.rows(query, {"name": name}):
            with reading(project_id):
                return read_identity(json.loads(body))
        return None

    def is_known(self, key_digest: str) -> bool:
        """Return whether a current or deleted project has this key."""
        query = """
            SELECT FROM sandbox_project WHERE key_digest = %(digest)s
            UNION ALL SELECT FROM sandbox_deleted_key WHERE digest = %(digest)s
        """
        return bool(self.rows(query, {"digest": key_digest}))

    def projects(self) -> list[ProjectColumns]:
        """Return all projects without their records, oldest first."""
        query = translate(POSTGRESQL, f"SELECT id, {PROJECTS_QUERY} position")
        return [ProjectColumns(*row) for row in self.rows(query)]

    def count(self) -> int:
        """Return the number of projects."""
        return int(self.rows("SELECT count(*) FROM sandbox_project")[0][0])

    @contextmanager
    def draw_ids(self, ids: Ids) -> Iterator[Ids]:
        """Draw identifiers for new projects, from one stream for all servers."""
        read = f"BEGIN; {ADD_VALUE}; SELECT body FROM sandbox_value WHERE name = 'ids' FOR UPDATE"
        write = "UPDATE sandbox_value SET body = %s WHERE name = 'ids'; COMMIT"
        with self.translate_errors(), closing(Executor(self)) as executor:
            drawn = read_id_generator(executor.execute(read, ("ids", encode_id_generator(ids)))[0][0][0])
            yield drawn
            executor.execute(write, (encode_id_generator(drawn),))

    def shared_value(self, name: str, proposed: str) -> str:
        """Return the value shared by all servers, which is the first proposed value."""
        self.rows(ADD_VALUE, (name, proposed))
        return str(self.rows("SELECT body FROM sandbox_value WHERE name = %s", (name,))[0][0])

    def was_deleted(self, key_digest: str) -> bool:
        """Return whether a deleted project had this key."""
        return bool(self.rows("SELECT 1 FROM sandbox_deleted_key WHERE digest = %s", (key_digest,)))

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project; user-chosen keys are never reused."""
        delete = "DELETE FROM sandbox_project WHERE id = %s"
        if fixed_key is None:
            self.rows(delete, (project_id,))
        else:
            self.rows(f"BEGIN; {delete}; {ADD_DELETED_KEY}; COMMIT", (project_id, fixed_key))

    def prune(self, unused_seconds: float | None, exempt_id: str) -> list[str]:
        """Delete projects that have been unused for this long; None means each project's own limit."""
        query = f"""
            BEGIN; DELETE FROM sandbox_project
            WHERE used_at < now() - coalesce(%(seconds)s, unused_seconds_max + {USE_DELAY_SECONDS})
                    * interval '1 second'
                AND (%(seconds)s::float8 IS NULL OR id <> %(spared)s)
            RETURNING id, key_digest, identity
        """
        with self.translate_errors(), closing(Executor(self)) as executor:
            deleted = executor.execute(query, {"seconds": unused_seconds, "spared": exempt_id})[0]
            for _, key_digest, identity in deleted:
                if _has_fixed_key(identity):
                    executor.execute(ADD_DELETED_KEY, (key_digest,))
            executor.execute("COMMIT", ())
        return [project_id for project_id, _, _ in deleted]

    # Errors

    def _with_retries(self, query: Callable[[], Result]) -> Result:
        """Run a query; retry it a few times after a broken connection."""
        for _ in range(ATTEMPTS_MAX - 1):
            try:
                return query()
            except psycopg.Error as error:
                if not self.is_connection_lost(error):
                    raise self.convert_error(error) from error
        with self.translate_errors():
            return query()

    def is_connection_lost(self, error: psycopg.Error) -> bool:
        """Return whether the connection broke, so that the last statement may have been executed."""
        if isinstance(error, PoolTimeout) or not isinstance(error, CONNECTION_ERRORS):
            return False
        is_broken = error.sqlstate is None or error.sqlstate.startswith(("08", "57P", "25P03"))
        self.generation += is_broken  # the next connection may lead to another database
        return is_broken


def _has_fixed_key(identity: str) -> bool:
    """Return whether the user chose a project's key, as is assumed for a damaged project."""
    try:
        with reading(""):
            return read_identity(json.loads(identity)).has_fixed_key
    except DamagedProject:
        return True


COUNT_COMMITS: Final = """
    SELECT count(*) FROM sandbox_request
    WHERE project = %(id)s AND version = %(version)s AND id || '/' || part = %(last)s
"""


def commit_parameters(row_changes: SharedChanges) -> dict[str, Any]:
    """Return the parameters for the statements that write a change set."""
    part: RequestCommit = row_changes.part
    return {
        **vars(row_changes),
        "id": row_changes.identity.project_id,
        "last": commit_name(part),
        "request_id": part.request_id,
        "part": part.number,
        "key": part.key,
        "answer": json.dumps(dict(zip(SavedAnswer._fields[2:], part.answer[2:], strict=True)))
        if part.answer is not None and part.key is None
        else None,
        "rows": encode_rows(row_changes.rows, Row._fields),
    }
