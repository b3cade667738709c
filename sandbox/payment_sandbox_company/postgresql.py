"""A PostgreSQL database that any number of servers share; it is the engine, and orders what they do.

No statement needs a session: there are no prepared statements, no settings that last and no advisory locks,
so that a pooler in transaction mode may stand in between. Where several statements go together, they are sent
as one, which takes a single round trip.
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
from payment_sandbox.projects.calling import Part
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.registry import AlreadyMade
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.dialects import (
    CHANGE,
    EMPTY,
    POSTGRESQL,
    PROJECTS,
    RECORD_COLUMNS,
    REPLACE,
    localized,
)
from payment_sandbox.storage.rows import Row, StoredProject, identity_body, ids_body, read_identity, read_ids
from payment_sandbox_company.batches import Batches
from payment_sandbox_company.bulletin import LATER, Bulletin, as_json, table_of
from payment_sandbox_company.connections import STATEMENT_SECONDS, Asker, Unavailable, reason
from payment_sandbox_company.places import Changes, Head, Place, SharedWritten, Undecided, last_of
from payment_sandbox_company.schema import migrate
from payment_sandbox_company.sharing import SharedStorage

Asked = TypeVar("Asked")

TRIES: Final = 3  # where a connection was broken
NOTED_SECONDS: Final = 5.0  # within which each server notes what is used there
DECIDED_SECONDS: Final = 4.0
AGAIN_SECONDS: Final = 0.1
ROWS_OF_A_CALL: Final = 1000
BROKEN: Final = (errors.OperationalError, errors.InternalError)
LISTED: Final = 500  # versions whose deleted records are listed

HEAD: Final = """
    version, last, complete_from,
    CASE WHEN courier_until > clock_timestamp() THEN courier END,
    CASE WHEN clock_until > clock_timestamp() THEN clock_holder END,
    coalesce(watched_until > clock_timestamp(), false)
"""
NEWER: Final = """
    CASE WHEN version <> %(known)s THEN chosen END, CASE WHEN version <> %(known)s THEN counters END
"""
LOCK: Final = f"""
    BEGIN; SET LOCAL lock_timeout = '4s'; SET LOCAL idle_in_transaction_session_timeout = '10s';
    SELECT {HEAD}, {NEWER} FROM sandbox_project WHERE id = %(id)s FOR UPDATE
"""
ROWS: Final = f"""
    SELECT {RECORD_COLUMNS} FROM sandbox_record
    WHERE project = %(id)s AND version > %(known)s ORDER BY position
"""
READ: Final = f"""
    BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SELECT {HEAD}, {NEWER} FROM sandbox_project WHERE id = %(id)s; {ROWS}; COMMIT
"""
CLAIMS: Final = f"""
    courier = %(courier)s,
    courier_until = CASE WHEN %(courier)s = %(me)s THEN {LATER}
        WHEN %(courier)s IS NOT NULL THEN courier_until END,
    clock_holder = %(clock_holder)s,
    clock_until = CASE WHEN split_part(%(clock_holder)s, ':', 1) = %(me)s THEN {LATER}
        WHEN %(clock_holder)s IS NOT NULL THEN clock_until END,
    attend_at = LEAST(
        CASE WHEN %(courier)s IS NOT NULL OR %(clock_holder)s IS NOT NULL THEN {LATER} END,
        clock_timestamp() + (%(due_in_seconds)s::float8 + 0.2) * interval '1 second'
    )
"""
CLAIM: Final = f"UPDATE sandbox_project SET {CLAIMS} WHERE id = %(id)s; COMMIT"
WRITE: Final = f"""
    WITH own AS (
        UPDATE sandbox_project SET version = version + 1, last = %(last)s,
            {localized(POSTGRESQL, CHANGE)}, unused_seconds_max = %(unused_seconds_max)s, {CLAIMS}
        WHERE id = %(id)s AND version = %(version)s RETURNING id, version
    ), put AS (
        INSERT INTO sandbox_record (project, kind, id, version, body)
        SELECT own.id, new.kind, new.id, own.version, new.body
        FROM own, {table_of(*Row._fields)} ORDER BY new.place
        {REPLACE}, version = excluded.version
    ), asked AS (
        INSERT INTO sandbox_request (project, id, part, version, answer)
        SELECT own.id, %(request_id)s, %(part)s, own.version, %(answer)s FROM own
    )
    SELECT version FROM own
"""
FORGET: Final = f"""
    DELETE FROM sandbox_record
    WHERE project = %(id)s AND body IS NULL AND version <= %(version)s - {LISTED};
    UPDATE sandbox_project SET complete_from = %(version)s - {LISTED} WHERE id = %(id)s
"""
ADD: Final = """
    INSERT INTO sandbox_project (id, key_digest, identity) VALUES (%(id)s, %(key_digest)s, %(identity)s)
    ON CONFLICT DO NOTHING
"""
ADD_VALUE: Final = "INSERT INTO sandbox_value VALUES (%s, %s) ON CONFLICT DO NOTHING"
ADD_DELETED_KEY: Final = "INSERT INTO sandbox_deleted_key VALUES (%s) ON CONFLICT DO NOTHING"


class PostgresSession:
    """A transaction that has locked the row of a project."""

    def __init__(self, database: "Database", project_id: str, known_version: int) -> None:
        self._database = database
        self._values = {"id": project_id, "known": known_version, "me": database.server_id}
        self._asker = Asker(database)
        try:
            rows = self._asker.ask(LOCK, self._values)[0]
        except BaseException:
            self._asker.close()
            raise
        self.head = Head(*rows[0]) if rows else None

    def changes(self, since: int) -> Changes:
        """What was written after a version; no other server can write meanwhile."""
        assert self.head is not None, "there is such a project"
        with self._database.refusing():
            rows = self._asker.ask(ROWS, {**self._values, "known": since}, 4 * STATEMENT_SECONDS)[0]
            head = self.head
            if not since and head.counters is None:  # memory had this version, or so it seemed
                query = "SELECT chosen, counters FROM sandbox_project WHERE id = %(id)s"
                chosen, counters = self._asker.ask(query, self._values)[0][0]
                head = head._replace(chosen=chosen, counters=counters)
        return Changes(head, [Row(*row) for row in rows])

    def commit(self, written: SharedWritten) -> int:
        """Write, and commit.

        Raises:
            NotStored: nothing was written; or, if it is ``Undecided``, nobody knows.
        """
        assert self.head is not None, "there is such a project"
        values = {**self._values, **written_values(written), "version": self.head.version}
        statements = [WRITE, "COMMIT"]
        if written.replaces_all:
            statements.insert(0, localized(POSTGRESQL, "; ".join(EMPTY)))
        elif self.head.version % LISTED == 0:
            statements.insert(0, FORGET)
        version = self._database.committed(self._asker, "; ".join(statements), values, written)
        if version is None:
            raise NotStored(self._database.place, "the row was changed without its lock", is_full=False)
        return version

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only who has claimed what, and commit."""
        claims = {"courier": courier, "clock_holder": clock_holder, "due_in_seconds": due_in_seconds}
        with self._database.refusing():
            self._asker.ask(CLAIM, {**self._values, **claims})

    def end(self) -> None:
        """Undo what was not committed, and unlock the row."""
        self._asker.close()


class Database(Bulletin):
    """The database of a company's sandbox, as one server sees it."""

    def __init__(self, address: str, server_id: str, real: RealTime) -> None:
        """Connect, and bring the schema up to date.

        Raises:
            StateRefused: the database cannot be used, and why.
        """
        super().__init__(address, real.monotonic_seconds, migrate)
        self.server_id = server_id
        self.commits = 0
        self.generation = 0
        self.real = real
        self._heads: Batches[str, Head | None] = Batches(self._read_heads)

    # Projects

    def begin(self, project_id: str, known_version: int) -> PostgresSession:
        """Lock a project's row.

        Raises:
            NotStored: the database does not answer in time.
        """
        return self._trying(lambda: PostgresSession(self, project_id, known_version))

    def head(self, project_id: str) -> Head | None:
        """The newest version of a project; calls that come together are one query.

        Raises:
            Unavailable: the database does not answer.
        """
        for _ in range(TRIES - 1):
            with suppress(Unavailable):
                return self._heads.call(project_id)
        return self._heads.call(project_id)

    def heads(self, project_ids: Sequence[str]) -> dict[str, Head]:
        """The newest versions of some projects, without those that were deleted."""
        query = f"SELECT id, {HEAD} FROM sandbox_project WHERE id = ANY(%(ids)s)"
        return {row[0]: Head(*row[1:]) for row in self.rows(query, {"ids": list(project_ids)})}

    def _read_heads(self, project_ids: Sequence[str]) -> Sequence[Head | None]:
        heads = self.heads(project_ids)
        return [heads.get(project_id) for project_id in project_ids]

    def changes(self, project_id: str, since: int) -> Changes | None:
        """What was written after a version, as of one moment; None if there is no such project."""
        values = {"id": project_id, "known": since, "me": self.server_id}
        heads, rows = self._trying(lambda: self.asked(READ, values, 4 * STATEMENT_SECONDS))
        return Changes(Head(*heads[0]), [Row(*row) for row in rows]) if heads else None

    def add(self, written: SharedWritten) -> int:
        """Add a project.

        Raises:
            AlreadyMade: there is one with this id or key.
            NotStored: nothing was written, and why.
        """
        identity = written.identity
        own = {"key_digest": identity.key_digest, "identity": identity_body(identity)}
        values = {**written_values(written), **own, "me": self.server_id, "version": 0}
        with self.refusing(), closing(Asker(self)) as asker:
            version = self.committed(asker, f"BEGIN; {ADD}; {WRITE}; COMMIT", values, written)
        if version is None:
            raise AlreadyMade("another server has just made a project with this key")
        return version

    def committed(
        self, asker: Asker, statements: str, values: Mapping[str, Any], written: SharedWritten
    ) -> int | None:
        """Write, and commit; returns the new version, or None if nothing was written.

        Raises:
            NotStored: nothing was written; or, if it is ``Undecided``, nobody knows.
        """
        try:
            versions = asker.ask(statements, values, seconds_for(written))[-1]
        except psycopg.Error as error:
            if not self.breaks(error):
                raise self.refused(error) from error
            asker.close()
            return self.happened(written, error)
        self.commits += bool(versions)
        return int(versions[0][0]) if versions else None

    def happened(self, written: SharedWritten, error: psycopg.Error) -> int:
        """The version of a commit whose answer was lost; the row's lock waits until it has ended.

        Raises:
            Undecided: the database does not answer.
            NotStored: it has not happened.
        """
        query = """
            BEGIN; SET LOCAL lock_timeout = '4s';
            SELECT FROM sandbox_project WHERE id = %(id)s FOR UPDATE;
            SELECT version FROM sandbox_request
            WHERE project = %(id)s AND id = %(request_id)s AND part = %(part)s; COMMIT
        """
        until_seconds = self.real.monotonic_seconds() + DECIDED_SECONDS
        while self.real.monotonic_seconds() < until_seconds:
            try:
                results = self.asked(query, written_values(written))
            except PoolTimeout:
                break
            except psycopg.Error:
                Event().wait(AGAIN_SECONDS)
                continue
            if results[-1]:
                self.commits += 1
                return int(results[-1][0][0])
            raise self.refused(error) from error
        raise Undecided(self.place, reason(error), written.part.request_id)

    def has_commit(self, project_id: str, version: int, last: str) -> bool:
        """Whether the database has a commit that this server knows; a standby might lack it."""
        values = {"id": project_id, "version": version, "last": last}
        with self.refusing():
            return bool(self.asked(COMMITTED, values)[0][0][0])

    def answer(self, project_id: str, request_id: str) -> str | None:
        """What was answered to a request that has happened; None if it has not."""
        query = """
            SELECT answer FROM sandbox_request
            WHERE project = %s AND id = %s AND answer IS NOT NULL ORDER BY part LIMIT 1
        """
        return next((answer for (answer,) in self.rows(query, (project_id, request_id))), None)

    def storage(self, identity: Identity, real: RealTime) -> SharedStorage:
        """The storage of a project that is new, or about to be read."""
        return SharedStorage(self, identity, Place(identity.project_id, self.server_id))

    # What a registry stores

    def identity(self, name: str) -> Identity | None:
        """The project with this id or key digest."""
        query = "SELECT identity FROM sandbox_project WHERE id = %(name)s OR key_digest = %(name)s"
        found = (read_identity(json.loads(body)) for (body,) in self.rows(query, {"name": name}))
        return next(found, None)

    def without_records(self) -> list[StoredProject]:
        """All projects, oldest first; none has its records."""
        query = localized(POSTGRESQL, f"SELECT {PROJECTS} position")
        return [
            StoredProject.read(identity, chosen, counters, ())
            for identity, chosen, counters in self.rows(query)
        ]

    def count(self) -> int:
        """How many projects there are."""
        return int(self.rows("SELECT count(*) FROM sandbox_project")[0][0])

    @contextmanager
    def drawing(self, ids: Ids) -> Iterator[Ids]:
        """The identifiers of new projects, which all servers draw from one stream."""
        with self.asking() as run, run.transaction():
            run.execute(ADD_VALUE, ("ids", ids_body(ids)))
            row = run.execute("SELECT body FROM sandbox_value WHERE name = 'ids' FOR UPDATE").fetchone()
            assert row is not None, "it was put there"
            drawn = read_ids(row[0])
            yield drawn
            run.execute("UPDATE sandbox_value SET body = %s WHERE name = 'ids'", (ids_body(drawn),))

    def shared_value(self, name: str, proposed: str) -> str:
        """A value that all servers share: the first one that was proposed."""
        self.rows(ADD_VALUE, (name, proposed))
        return str(self.rows("SELECT body FROM sandbox_value WHERE name = %s", (name,))[0][0])

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        return bool(self.rows("SELECT 1 FROM sandbox_deleted_key WHERE digest = %s", (key_digest,)))

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project; a key that a user has chosen is not given out again."""
        with self.asking() as run, run.transaction():
            run.execute("DELETE FROM sandbox_project WHERE id = %s", (project_id,))
            if fixed_key is not None:
                run.execute(ADD_DELETED_KEY, (fixed_key,))

    def prune(self, unused_seconds: float | None, spared: str) -> list[str]:
        """Delete the projects that nobody has called for so long, or for as long as each may be unused."""
        query = f"""
            DELETE FROM sandbox_project
            WHERE used_at < now() - coalesce(%(seconds)s, unused_seconds_max + {NOTED_SECONDS})
                    * interval '1 second'
                AND (%(seconds)s::float8 IS NULL OR id <> %(spared)s)
            RETURNING id, key_digest, identity
        """
        with self.asking() as run, run.transaction():
            deleted = run.execute(query, {"seconds": unused_seconds, "spared": spared}).fetchall()
            for _, key_digest, identity in deleted:
                if read_identity(json.loads(identity)).has_fixed_key:
                    run.execute(ADD_DELETED_KEY, (key_digest,))
        return [project_id for project_id, _, _ in deleted]

    # Trouble

    def _trying(self, ask: Callable[[], Asked]) -> Asked:
        """What the database answers; it is asked a few times if connections break."""
        for _ in range(TRIES - 1):
            try:
                return ask()
            except psycopg.Error as error:
                if not self.breaks(error):
                    raise self.refused(error) from error
        with self.refusing():
            return ask()

    def breaks(self, error: psycopg.Error) -> bool:
        """Whether the connection broke, so that what was sent last may have happened all the same."""
        if isinstance(error, PoolTimeout) or not isinstance(error, BROKEN):
            return False
        is_broken = error.sqlstate is None or error.sqlstate.startswith(("08", "57P", "25P03"))
        self.generation += is_broken  # the next connection may lead to another database
        return is_broken


COMMITTED: Final = """
    SELECT count(*) FROM sandbox_request
    WHERE project = %(id)s AND version = %(version)s AND id || '/' || part = %(last)s
"""


def seconds_for(written: SharedWritten) -> float:
    """How long a commit may take: the state of a large project is a lot."""
    return STATEMENT_SECONDS * (4 if len(written.rows) > ROWS_OF_A_CALL else 1)


def written_values(written: SharedWritten) -> dict[str, Any]:
    """The parameters of a statement that writes a change set."""
    part: Part = written.part
    return {
        **vars(written),
        "id": written.identity.project_id,
        "last": last_of(part),
        "request_id": part.request_id,
        "part": part.number,
        "answer": part.answer,
        "rows": as_json(written.rows, Row._fields),
    }
