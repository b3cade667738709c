"""A PostgreSQL database that any number of servers share; each project has one owner at a time.

Who owns a project says its row: a server, and a token that rises whenever the project changes hands. Every
commit moves the project's sequence number on the condition that the token is still the same, so a server that
lost a project can write nothing more. The heartbeats of servers are on the database's clock.

No statement needs a session: there are no prepared statements, no settings and no advisory locks, so that a
pooler in transaction mode may stand in between.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import errors
from psycopg_pool import PoolTimeout

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import ProjectMoved
from payment_sandbox.projects.store import ChangeSet, HistoryRow
from payment_sandbox.storage.batches import Batches
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.connections import STATEMENT_SECONDS, Connections, Unavailable, reason
from payment_sandbox.storage.history import KEPT_MAX
from payment_sandbox.storage.rows import (
    DELIVERY,
    DUE,
    DurableStore,
    Row,
    StoredProject,
    chosen_body,
    counters_body,
    identity_body,
    read_identity,
    rows_of,
)
from payment_sandbox.storage.schema import migrate

MOVED: Final = "the project has moved to another server in the meantime"
UNKNOWN: Final = "the database broke off: whether this has happened is unknown"

LEASE_SECONDS: Final = 10.0
"""How long after its last heartbeat a server still owns its projects, on the database's clock."""

TRIES: Final = 3  # where a connection was broken
TOGETHER_MAX: Final = 50  # records of a change set that is written with others


class Address(NamedTuple):
    """Where the other servers reach one."""

    url: str
    fingerprint: str | None = None  # of its certificate; None: it speaks no TLS


class Owner(NamedTuple):
    """A project, and which server owns it; None if nobody does who is alive."""

    project_id: str
    server_id: str | None
    url: str | None
    fingerprint: str | None


class PeerServer(NamedTuple):
    """A server of the same sandbox."""

    server_id: str
    url: str
    version: str
    is_draining: bool
    projects: int
    fingerprint: str | None


class Lease:
    """What a server holds of one project: the right to write it, as long as the token is the newest."""

    __slots__ = ("is_lost", "project_id", "sequence", "token")

    def __init__(self, project_id: str, token: int = 0, sequence: int = 0) -> None:
        self.project_id = project_id
        self.token = token  # 0: the project is not in the database
        self.sequence = sequence  # of the newest commit
        self.is_lost = False  # or perhaps: what is in memory may be old

    def lost(self, why: str) -> ProjectMoved:
        """Give up what is in memory of the project; returns what to raise."""
        self.is_lost = True
        return ProjectMoved(why)


class Claimed(NamedTuple):
    """A project that was taken over, with what is stored of it."""

    lease: Lease
    stored: StoredProject
    unused_seconds: float  # since its last call


ALIVE: Final = f"s.heartbeat_at > now() - interval '{LEASE_SECONDS} seconds'"
LOCATE: Final = f"""
    SELECT p.id, s.id, s.url, s.fingerprint FROM sandbox_project p
    LEFT JOIN sandbox_server s ON s.id = p.owner AND {ALIVE}
    WHERE p.id = %(name)s OR p.key_digest = %(name)s
"""
CLAIM: Final = f"""
    UPDATE sandbox_project p SET owner = %(me)s, token = token + 1
    WHERE p.id = %(id)s AND (p.owner IS NULL OR p.owner = %(me)s
        OR NOT EXISTS (SELECT FROM sandbox_server s WHERE s.id = p.owner AND {ALIVE}))
    RETURNING token, sequence, identity, chosen, counters,
        coalesce(extract(epoch FROM now() - p.used_at), 0)::float8
"""
HEARTBEAT: Final = """
    INSERT INTO sandbox_server (id, url, fingerprint, version, is_draining)
    VALUES (%(id)s, %(url)s, %(fingerprint)s, %(version)s, %(drains)s)
    ON CONFLICT (id) DO UPDATE SET
        heartbeat_at = now(), url = excluded.url, fingerprint = excluded.fingerprint,
        is_draining = excluded.is_draining
    RETURNING xmax = 0
"""
FENCE: Final = """
    UPDATE sandbox_project SET sequence = sequence + 1,
        chosen = coalesce(%(chosen)s, chosen), counters = coalesce(%(counters)s, counters)
    WHERE id = %(id)s AND token = %(token)s RETURNING sequence
"""
ADD: Final = """
    INSERT INTO sandbox_project (id, key_digest, identity, chosen, counters, owner, token, sequence)
    VALUES (%(id)s, %(key_digest)s, %(identity)s, %(chosen)s, %(counters)s, %(me)s, 1, 1)
    ON CONFLICT DO NOTHING RETURNING sequence
"""
PUT: Final = """
    INSERT INTO sandbox_record (project, kind, id, body)
    SELECT new.project, new.kind, new.id, new.body
    FROM unnest(%(projects)b::text[], %(kinds)b::text[], %(ids)b::text[], %(bodies)b::text[]) WITH ORDINALITY
        AS new (project, kind, id, body, place)
    {condition}
    ORDER BY new.place
    ON CONFLICT (project, kind, id) DO UPDATE SET body = excluded.body
"""
COMMIT: Final = f"""
    WITH fence AS (
        UPDATE sandbox_project p SET sequence = p.sequence + 1,
            chosen = coalesce(new.chosen, p.chosen), counters = coalesce(new.counters, p.counters)
        FROM unnest(%(fenced)b::text[], %(tokens)b::bigint[], %(chosen)b::text[], %(counters)b::text[])
            AS new (id, token, chosen, counters)
        WHERE p.id = new.id AND p.token = new.token RETURNING p.id, p.sequence
    ), put AS ({PUT.format(condition="WHERE new.project IN (SELECT id FROM fence)")}
    ), gone AS (
        DELETE FROM sandbox_record r
        USING unnest(%(gone_projects)b::text[], %(gone_kinds)b::text[], %(gone_ids)b::text[])
            AS gone (project, kind, id)
        WHERE r.project = gone.project AND r.kind = gone.kind AND r.id = gone.id
            AND gone.project IN (SELECT id FROM fence)
    )
    SELECT id, sequence FROM fence
"""
"""The change sets of several projects: nothing is written of one whose fence does not hold."""

PUT_HISTORY: Final = """
    WITH own AS (SELECT id FROM sandbox_project WHERE id = %(id)s AND token = %(token)s FOR SHARE),
    old AS (
        DELETE FROM sandbox_history h USING own WHERE h.project = own.id AND h.number < %(before)s
    )
    INSERT INTO sandbox_history (project, kind, number, body)
    SELECT own.id, new.kind, new.number, new.body
    FROM own, unnest(%(kinds)b::text[], %(numbers)b::bigint[], %(bodies)b::text[]) AS new (kind, number, body)
    ON CONFLICT (project, number) DO UPDATE SET kind = excluded.kind, body = excluded.body
"""
ADD_DELETED_KEY: Final = "INSERT INTO sandbox_deleted_key VALUES (%s) ON CONFLICT DO NOTHING"
DUE_ELSEWHERE: Final = f"""
    SELECT p.id FROM sandbox_project p
    WHERE p.due_at <= now() AND p.owner IS NULL
        OR p.owner IS NOT NULL AND NOT EXISTS (SELECT FROM sandbox_server s WHERE s.id = p.owner AND {ALIVE})
    ORDER BY p.due_at NULLS LAST LIMIT %(most)s FOR UPDATE SKIP LOCKED
"""


class Database(Connections):
    """The database of a company's sandbox, as one server sees it."""

    def __init__(self, address: str, server_id: str, real: RealTime) -> None:
        """Connect, and bring the schema up to date.

        Raises:
            StateRefused: the database cannot be used, and why.
        """
        super().__init__(address, real.monotonic_seconds, migrate)
        self.server_id = server_id
        self.commits = 0
        self.real = real
        self._batches = Batches(self._write)

    # Servers

    def beat(self, address: Address, version: str, *, is_draining: bool) -> bool:
        """Say that this server is alive; False if the others had given it up, or it is new."""
        own = {"id": self.server_id, "version": version, "drains": is_draining}
        with self.asking() as run:
            row = run.execute(HEARTBEAT, {**own, **address._asdict()}).fetchone()
        return row is not None and not row[0]

    def replace(self, url: str) -> None:
        """Give up whoever was reached at this address before: only one process can be.

        Servers that ended long ago without saying so are deleted, too.
        """
        query = """
            DELETE FROM sandbox_server
            WHERE url = %s AND id <> %s OR heartbeat_at < now() - interval '1 hour'
        """
        with self.asking() as run:
            run.execute(query, (url, self.server_id))

    def leave(self) -> None:
        """Remove this server; what it still owns can be taken at once."""
        with self.asking() as run:
            run.execute("DELETE FROM sandbox_server WHERE id = %s", (self.server_id,))

    def servers(self) -> list[PeerServer]:
        """All servers that are alive, oldest first."""
        query = f"""
            SELECT s.id, s.url, s.version, s.is_draining,
                (SELECT count(*) FROM sandbox_project p WHERE p.owner = s.id), s.fingerprint
            FROM sandbox_server s WHERE {ALIVE} ORDER BY s.started_at, s.id
        """
        with self.asking() as run:
            return [PeerServer(*row) for row in run.execute(query)]

    # Who owns which project

    def locate(self, name: str) -> Owner | None:
        """The project with this id or key digest, and its owner."""
        with self.asking() as run:
            row = run.execute(LOCATE, {"name": name}).fetchone()
        return Owner(*row) if row is not None else None

    def claim(self, project_id: str) -> Claimed | None:
        """Take a project over, with all that is stored of it; None if somebody else owns it."""
        with self.asking(4 * STATEMENT_SECONDS) as run, run.transaction():
            row = run.execute(CLAIM, {"me": self.server_id, "id": project_id}).fetchone()
            if row is None:
                return None
            token, sequence, identity, chosen, counters, unused_seconds = row
            query = "SELECT kind, body FROM sandbox_record WHERE project = %s ORDER BY position"
            rows = run.execute(query, (project_id,)).fetchall()
            # not with the claim, which does not see what it has waited for
            query = "SELECT max(number) FROM sandbox_history WHERE project = %s"
            (newest,) = run.execute(query, (project_id,)).fetchone() or (None,)
            stored = StoredProject.read(identity, chosen, counters, rows, newest)
        return Claimed(Lease(project_id, token, sequence), stored, unused_seconds)

    def release(self, lease: Lease, due_in_seconds: float | None, unused_seconds: float) -> None:
        """Give a project back; somebody takes it over when it is due, in this many real seconds.

        It was last used ``unused_seconds`` ago.
        """
        query = """
            UPDATE sandbox_project
            SET owner = NULL, due_at = now() + %s::float8 * interval '1 second',
                used_at = now() - %s * interval '1 second'
            WHERE id = %s AND token = %s
        """
        with self.asking() as run:
            run.execute(query, (due_in_seconds, unused_seconds, lease.project_id, lease.token))

    def unattended(self, most: int) -> list[str]:
        """Projects that something is due in, or whose owner is gone, while nobody else looks after them."""
        with self.asking() as run, run.transaction():
            return [project_id for (project_id,) in run.execute(DUE_ELSEWHERE, {"most": most})]

    def tokens(self) -> dict[str, int]:
        """The tokens of all projects that this server owns."""
        with self.asking() as run:
            return dict(
                run.execute("SELECT id, token FROM sandbox_project WHERE owner = %s", (self.server_id,))
            )

    # What a registry stores

    def without_records(self, name: str | None = None) -> list[StoredProject]:
        """All projects, oldest first, or the one with this id or key digest; none has its records."""
        query = """
            SELECT identity, chosen, counters FROM sandbox_project
            WHERE %(name)s::text IS NULL OR id = %(name)s OR key_digest = %(name)s ORDER BY position
        """
        with self.asking() as run:
            rows = run.execute(query, {"name": name}).fetchall()
        return [StoredProject.read(identity, chosen, counters, ()) for identity, chosen, counters in rows]

    def count(self) -> int:
        """How many projects there are."""
        with self.asking() as run:
            row = run.execute("SELECT count(*) FROM sandbox_project").fetchone()
        return int(row[0]) if row is not None else 0

    @contextmanager
    def drawing(self, ids: Ids) -> Iterator[Ids]:
        """The identifiers of new projects, which all servers draw from one stream."""
        with self.asking() as run, run.transaction():
            first = json.dumps({"seed": ids.seed, "counts": ids.counts})
            run.execute("INSERT INTO sandbox_value VALUES ('ids', %s) ON CONFLICT DO NOTHING", (first,))
            row = run.execute("SELECT body FROM sandbox_value WHERE name = 'ids' FOR UPDATE").fetchone()
            assert row is not None, "it was put there"
            drawn = Ids(**json.loads(row[0]))
            yield drawn
            after = json.dumps({"seed": drawn.seed, "counts": drawn.counts})
            run.execute("UPDATE sandbox_value SET body = %s WHERE name = 'ids'", (after,))

    def shared_value(self, name: str, proposed: str) -> str:
        """A value that all servers share: the first one that was proposed."""
        with self.asking() as run:
            run.execute("INSERT INTO sandbox_value VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, proposed))
            row = run.execute("SELECT body FROM sandbox_value WHERE name = %s", (name,)).fetchone()
        assert row is not None, "it was put there"
        return str(row[0])

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this key."""
        with self.asking() as run:
            query = "SELECT 1 FROM sandbox_deleted_key WHERE digest = %s"
            return run.execute(query, (key_digest,)).fetchone() is not None

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project of this server; a key that a user has chosen is not given out again.

        Raises:
            ProjectMoved: another server has it.
        """
        with self.asking() as run, run.transaction():
            query = "DELETE FROM sandbox_project WHERE id = %s AND owner = %s RETURNING id"
            if run.execute(query, (project_id, self.server_id)).fetchone() is None:
                raise ProjectMoved(MOVED)
            if fixed_key is not None:
                run.execute(ADD_DELETED_KEY, (fixed_key,))

    def prune(self, unused_seconds: float, spared: str) -> list[str]:
        """Delete the projects that no server owns and nobody has called for so long; returns their ids."""
        query = """
            DELETE FROM sandbox_project
            WHERE owner IS NULL AND id <> %s AND used_at < now() - %s * interval '1 second'
            RETURNING id, key_digest, identity
        """
        with self.asking() as run, run.transaction():
            deleted = run.execute(query, (spared, unused_seconds)).fetchall()
            for _, key_digest, identity in deleted:
                if read_identity(json.loads(identity)).has_fixed_key:
                    run.execute(ADD_DELETED_KEY, (key_digest,))
        return [project_id for project_id, _, _ in deleted]

    def storage(self, identity: Identity, real: RealTime) -> "PostgresStorage":
        """The storage of a project that is new, or only read."""
        return PostgresStorage(self, identity, Lease(identity.project_id))

    # Commits

    def write(self, lease: Lease, change: "Written") -> None:
        """Write a change set in one transaction, or nothing of it.

        Raises:
            NotStored: nothing was written, and why.
            ProjectMoved: another server owns the project, or has added one with this id or key; or the
                database broke off, and does not say what happened.
        """
        goes_together = not change.replaces_all and len(change.rows) <= TOGETHER_MAX
        for number in range(TRIES):
            is_alone = number > 0 or not goes_together
            try:
                sequence = (
                    self._write_alone(lease, change) if is_alone else self._batches.call((lease, change))
                )
            except psycopg.Error as error:
                if self._happened(lease, error, is_alone=is_alone):
                    return
                problem = error
                continue  # the connection was broken before, or another project's change set was refused
            if sequence is None:
                raise lease.lost(MOVED)
            lease.token, lease.sequence = lease.token or 1, sequence
            self.commits += 1
            return
        raise Unavailable(self.place, reason(problem), is_full=False) from problem

    def _write_alone(self, lease: Lease, change: "Written") -> int | None:
        """The project's new sequence number; None if its token is not the newest."""
        return self._replace(lease, change) if change.replaces_all else self._write([(lease, change)])[0]

    def _write(self, commits: "Sequence[tuple[Lease, Written]]") -> Sequence[int | None]:
        with self.connected() as run:
            sequences = dict(run.execute(COMMIT, _parameters(commits)).fetchall())
        return [sequences.get(lease.project_id) for lease, _ in commits]

    def _replace(self, lease: Lease, change: "Written") -> int | None:
        own = {
            "id": lease.project_id,
            "token": lease.token,
            "identity": identity_body(change.identity),
            "key_digest": change.identity.key_digest,
            "me": self.server_id,
            "chosen": change.chosen,
            "counters": change.counters,
        }
        with self.connected() as run, run.transaction():
            row = run.execute(FENCE if lease.token else ADD, own).fetchone()
            if row is None:
                return None
            run.execute("DELETE FROM sandbox_record WHERE project = %(id)s", own)
            run.execute("DELETE FROM sandbox_history WHERE project = %(id)s", own)
            run.execute(PUT.format(condition=""), _parameters([(lease, change)]))
            return int(row[0])

    def write_history(self, lease: Lease, rows: Sequence[HistoryRow]) -> None:
        """Write records of a journal, unless another server owns the project; delete the oldest."""
        values = {
            "id": lease.project_id,
            "token": lease.token,
            "kinds": [row.kind for row in rows],
            "numbers": [row.number for row in rows],
            "bodies": [row.body for row in rows],
            "before": max(row.number for row in rows) - KEPT_MAX,
        }
        with self.asking() as run:
            run.execute(PUT_HISTORY, values)

    def read_history(self, project_id: str, number_max: int) -> Sequence[HistoryRow]:
        """The records of a journal up to a number, oldest first."""
        query = """
            SELECT kind, number, body FROM sandbox_history WHERE project = %s AND number <= %s ORDER BY number
        """
        with self.asking(4 * STATEMENT_SECONDS) as run:
            return [HistoryRow(*row) for row in run.execute(query, (project_id, number_max))]

    def _refused(self, error: psycopg.Error) -> NotStored:
        return NotStored(self.place, reason(error), is_full=isinstance(error, errors.DiskFull))

    def _happened(self, lease: Lease, error: psycopg.Error, *, is_alone: bool) -> bool:
        """Whether a commit that failed so has happened all the same; if not, it can be tried again.

        Raises:
            NotStored: it cannot.
            ProjectMoved: another server has taken the project over, or the database does not answer.
        """
        if isinstance(error, PoolTimeout):
            raise Unavailable(self.place, reason(error), is_full=False) from error
        if _is_unknown(error):
            return self._has_moved_on(lease)
        if is_alone:
            raise self._refused(error) from error
        return False

    def _has_moved_on(self, lease: Lease) -> bool:
        """Whether there is a newer commit; a new token stops the one under way, or comes after it.

        Raises:
            ProjectMoved: another server has taken the project over, or the database does not answer.
        """
        query = """
            UPDATE sandbox_project SET token = token + 1 WHERE id = %s AND token = %s
            RETURNING token, sequence
        """
        for _ in range(TRIES):  # other connections may be broken, too
            try:
                with self.connected() as run:
                    row = run.execute(query, (lease.project_id, lease.token)).fetchone()
            except psycopg.Error:
                continue
            if row is None:
                raise lease.lost(MOVED)
            happened = row[1] > lease.sequence
            lease.token, lease.sequence = row
            return bool(happened)
        raise lease.lost(UNKNOWN)


def _is_unknown(error: psycopg.Error) -> bool:
    """Whether the connection broke: a commit may have happened all the same."""
    is_broken = isinstance(error, errors.OperationalError | errors.InternalError)
    return is_broken and (error.sqlstate is None or error.sqlstate.startswith(("08", "57P")))


class Written(NamedTuple):
    """A change set as it is written."""

    rows: Sequence[Row]
    gone: Sequence[tuple[str, str]]  # kind and id
    chosen: str | None
    counters: str | None
    replaces_all: bool
    identity: Identity


def _parameters(commits: Sequence[tuple[Lease, Written]]) -> dict[str, list[Any]]:
    """The parameters of a statement that writes these change sets."""
    fences = [(lease.project_id, lease.token, change.chosen, change.counters) for lease, change in commits]
    put = [(lease.project_id, *row) for lease, change in commits for row in change.rows]
    gone = [(lease.project_id, *item) for lease, change in commits for item in change.gone]
    return {
        **_columns(fences, "fenced", "tokens", "chosen", "counters"),
        **_columns(put, "projects", "kinds", "ids", "bodies"),
        **_columns(gone, "gone_projects", "gone_kinds", "gone_ids"),
    }


def _columns(rows: Sequence[tuple[Any, ...]], *names: str) -> dict[str, list[Any]]:
    return {name: [row[number] for row in rows] for number, name in enumerate(names)}


class PostgresStorage:
    """Creates the stores of one project, one per epoch; all of them write under one lease."""

    def __init__(self, database: Database, identity: Identity, lease: Lease) -> None:
        self._database = database
        self._identity = identity
        self._lease = lease

    def store(self) -> "PostgresStore":
        """An empty store; its first commit deletes what an earlier epoch left."""
        return PostgresStore(self._database, self._identity, self._lease)


class PostgresStore(DurableStore):
    """Writes to the database, under the lease of its project."""

    def __init__(self, database: Database, identity: Identity, lease: Lease) -> None:
        super().__init__()
        self._database = database
        self._identity = identity
        self.lease = lease

    def write(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Write it in one transaction."""
        finished = {str(sequence) for sequence in change.finished}
        rows = [row for row in rows_of(change) if row.kind != DUE or row.id not in finished]
        gone = [(DUE, item_id) for item_id in finished] + [(DELIVERY, item_id) for item_id in surplus]
        counters = counters_body(change, self._database.real.wall_now())
        written = Written(rows, gone, chosen_body(change), counters, self.is_new, self._identity)
        self._database.write(self.lease, written)

    def keep_history(self, rows: Sequence[HistoryRow]) -> None:
        """Write records of the journal."""
        self._database.write_history(self.lease, rows)

    def history(self, number_max: int) -> Sequence[HistoryRow]:
        """The records of the journal up to a number."""
        return self._database.read_history(self._identity.project_id, number_max)
