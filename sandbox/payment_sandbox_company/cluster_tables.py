"""Communication between servers through the shared database: journals, events, claims, live servers."""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any, Final, NamedTuple

from payment_sandbox.projects.events import (
    EVENTS_STORED_MAX,
    Entry,
    Events,
    StoredEvent,
    UnstoredEntry,
    shorten,
)
from payment_sandbox.projects.journal import UNSTORED_MAX, EpochJournal
from payment_sandbox.projects.store import JournalRow
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.dialects import JOURNAL_COLUMNS, POSTGRESQL, SELECT_JOURNAL, translate
from payment_sandbox.storage.journal_rows import RECORDS_MAX
from payment_sandbox_company.connections import STATEMENT_SECONDS, Connections
from payment_sandbox_company.project_rows import CLAIM_SECONDS

REQUEST_RETENTION: Final = "1 hour"
WRITE_DELAY_SECONDS: Final = 0.05
READ_OVERLAP: Final = "10 seconds"  # longer than the statement timeout
CLAIM_END: Final = f"clock_timestamp() + interval '{CLAIM_SECONDS} seconds'"


def encode_rows(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> str:
    """Encode rows for the parameter ``rows``, because arrays are much slower in the driver."""
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows])


NUMBERS: Final = ("epoch", "number")


def rows_table(*names: str) -> str:
    """Return SQL for the parameter ``rows`` as a table ``new`` with the column ``place`` for the order."""
    columns = ", ".join(f"{name} {'bigint' if name in NUMBERS else 'text'}" for name in names)
    return f"""
        ROWS FROM (json_to_recordset(%(rows)s::json) AS ({columns}))
        WITH ORDINALITY AS new ({", ".join(names)}, place)
    """


HOLDS_CLOCK: Final = "split_part(clock_holder, ':', 1) = %(me)s"
UPDATE_PROJECTS: Final = """
    UPDATE sandbox_project SET {} WHERE id IN (
        SELECT id FROM sandbox_project WHERE {} FOR UPDATE SKIP LOCKED)
"""
"""Updates projects, except projects with locked rows."""
HISTORY_NAMES: Final = ("project", "epoch", *JournalRow._fields)
INSERT_HISTORY: Final = f"""
    WITH current AS (
        SELECT id, epoch_version FROM sandbox_project WHERE id = ANY(%(ids)s) ORDER BY id FOR KEY SHARE
    )
    INSERT INTO sandbox_history (project, kind, number, server, body)
    SELECT new.project, new.kind, new.number, %(me)s, new.body
    FROM {rows_table(*HISTORY_NAMES)} JOIN current ON id = new.project AND epoch_version = new.epoch
    ON CONFLICT (project, number) DO NOTHING
"""
"""Inserts records of current epochs; the locks keep resets from ending an epoch in the meantime."""
EVENT_NAMES: Final = ("project", "kind", "data")
INSERT_EVENTS: Final = f"""
    BEGIN; SELECT FROM sandbox_project WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE;
    INSERT INTO sandbox_event (project, number, kind, data)
    SELECT new.project, coalesce(newest.number, 0) + row_number() OVER (PARTITION BY id ORDER BY place),
        new.kind, new.data
    FROM {rows_table(*EVENT_NAMES)} JOIN sandbox_project ON id = new.project LEFT JOIN LATERAL (
        SELECT max(number) AS number FROM sandbox_event WHERE project = id) AS newest ON true;
    COMMIT
"""
"""Inserts events with the next numbers of their projects; the locks let one server number at a time."""


class PeerServer(NamedTuple):
    """A server of the same sandbox."""

    id: str
    url: str
    version: str
    is_draining: bool
    projects: int


SERVER_COLUMNS: Final = ", ".join(PeerServer._fields)


class ClusterTables(Connections):
    """Access to a shared database, except to the state of projects."""

    server_id: str

    def __init__(self, address: str, monotonic_seconds: Callable[[], float]) -> None:
        super().__init__(address, monotonic_seconds)
        self.unflushed: dict[Any, EpochJournal] = {}
        self._new_events: deque[tuple[str, str, Entry]] = deque(maxlen=UNSTORED_MAX)

    # Journals

    def write_history(self, rows: Sequence[tuple[str, int, JournalRow]]) -> None:
        """Write journal records, each with its project and epoch; past epochs have no journal any more."""
        if not rows:
            return
        flat = [(project_id, epoch, *row) for project_id, epoch, row in rows]
        ids = list({project_id for project_id, *_ in rows})
        values = {"me": self.server_id, "ids": ids, "rows": encode_rows(flat, HISTORY_NAMES)}
        self.rows(INSERT_HISTORY, values)

    def purge_history(self, project_id: str) -> None:
        """Delete the oldest records and events of a project beyond their limits."""
        query = f"""
            DELETE FROM sandbox_history WHERE project = %(id)s AND number <= (
                SELECT number FROM sandbox_history WHERE project = %(id)s
                ORDER BY number DESC OFFSET {RECORDS_MAX} LIMIT 1);
            DELETE FROM sandbox_event WHERE project = %(id)s AND number <= (
                SELECT max(number) - {EVENTS_STORED_MAX} FROM sandbox_event WHERE project = %(id)s)
        """
        self.rows(query, {"id": project_id})

    def read_newer_history(self, project_id: str, since: str | None) -> tuple[list[JournalRow], str]:
        """Read journal records that other servers wrote since a time; also return the time for the next call.

        Without a time, read the whole journal. Records from statements in flight at that time are read again.
        """
        query = f"""
            SELECT now(), {JOURNAL_COLUMNS} FROM sandbox_history
            WHERE project = %(id)s AND (%(since)s::timestamptz IS NULL
                OR server <> %(me)s AND made_at > %(since)s::timestamptz - interval '{READ_OVERLAP}')
            UNION ALL SELECT now(), '', 0, '' ORDER BY 3
        """
        Event().wait(WRITE_DELAY_SECONDS)  # other servers write their records shortly after they answer
        values = {"id": project_id, "me": self.server_id, "since": since}
        (now, *_), *rows = self.rows(query, values, 4 * STATEMENT_SECONDS)
        return [JournalRow(*row[1:]) for row in rows], now

    def queue_events(self, project_id: str, entries: Sequence[tuple[str, Entry]]) -> None:
        """Queue the new events of a project for ``flush_events``."""
        self._new_events.extend((project_id, kind, entry) for kind, entry in entries)

    def flush_events(self) -> None:
        """Number and write the queued events.

        Raises:
            NotStored: writing failed; the next call retries.
        """
        events = [self._new_events.popleft() for _ in range(len(self._new_events))]
        if not events:
            return
        flat = [
            (project_id, kind, json.dumps(shorten(entry.summary()))) for project_id, kind, entry in events
        ]
        ids = list({project_id for project_id, *_ in events})
        try:
            self.rows(INSERT_EVENTS, {"ids": ids, "rows": encode_rows(flat, EVENT_NAMES)})
        except NotStored:
            self._new_events.extendleft(reversed(events))
            raise

    def watch(self, feeds: Mapping[str, Events]) -> None:
        """Add the newest events of all servers to the feeds of projects."""
        query = f"""
            SELECT event.project, event.number, event.kind, event.data
            FROM {rows_table("project", "number")} JOIN sandbox_event AS event USING (project)
            WHERE event.number > greatest(new.number, (
                SELECT max(number) FROM sandbox_event WHERE project = new.project) - {EVENTS_STORED_MAX})
            ORDER BY event.number
        """
        known = [(project_id, feed.number) for project_id, feed in feeds.items()]
        newer: dict[str, list[StoredEvent]] = {}
        for project_id, number, kind, data in self.rows(
            query, {"rows": encode_rows(known, ("project", "number"))}
        ):
            event = StoredEvent(number, kind, UnstoredEntry(json.loads(data)))
            newer.setdefault(project_id, []).append(event)
        for project_id, events in newer.items():
            feeds[project_id].follow(events)

    def read_journal_rows(self, project_id: str, number_max: int) -> Sequence[JournalRow]:
        """Return the records of a journal up to a record number, oldest first."""
        values = {"id": project_id, "number": number_max}
        rows = self.rows(translate(POSTGRESQL, SELECT_JOURNAL), values, 4 * STATEMENT_SECONDS)
        return [JournalRow(*row) for row in rows]

    # Claims and servers

    def claim_orphans(self, limit: int) -> list[str]:
        """Claim projects with a due event or an expired claim; return their ids."""
        is_due = "attend_at <= now() ORDER BY attend_at LIMIT %s"
        query = UPDATE_PROJECTS.format(f"attend_at = {CLAIM_END}", is_due)
        return [project_id for (project_id,) in self.rows(f"{query} RETURNING id", (limit,))]

    def renew(self, project_ids: Sequence[str]) -> None:
        """Renew this server's claims on these projects."""
        assignments = f"""
            attend_at = {CLAIM_END},
            courier_until = CASE WHEN courier = %(me)s THEN {CLAIM_END} ELSE courier_until END,
            clock_until = CASE WHEN {HOLDS_CLOCK} THEN {CLAIM_END} ELSE clock_until END
        """
        is_claimed = f"id = ANY(%(ids)s) AND (courier = %(me)s OR {HOLDS_CLOCK}) ORDER BY id"
        self.rows(
            UPDATE_PROJECTS.format(assignments, is_claimed), {"me": self.server_id, "ids": list(project_ids)}
        )

    def record_use(self, project_ids: Sequence[str]) -> None:
        """Record the current time as the last use of these projects."""
        self.rows(UPDATE_PROJECTS.format("used_at = now()", "id = ANY(%s)"), (list(project_ids),))

    def purge_requests(self) -> None:
        """Delete old notes, and old answers to requests."""
        self.rows(f"""
            DELETE FROM sandbox_request WHERE made_at < now() - interval '{REQUEST_RETENTION}';
            DELETE FROM sandbox_note WHERE made_at < now() - interval '{REQUEST_RETENTION}'
        """)

    def report(self, server: PeerServer) -> None:
        """Report this server as alive, for the list of servers."""
        query = f"""
            INSERT INTO sandbox_server ({SERVER_COLUMNS}) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (id) DO UPDATE SET seen_at = now(), url = excluded.url,
                is_draining = excluded.is_draining, projects = excluded.projects;
            DELETE FROM sandbox_server WHERE seen_at < now() - interval '1 hour'
        """
        self.rows(query, server)

    def leave(self) -> None:
        """Remove this server from the list, and release its claims."""
        query = """
            UPDATE sandbox_project SET courier = NULL, courier_until = NULL, attend_at = now()
            WHERE courier = %(me)s;
            DELETE FROM sandbox_server WHERE id = %(me)s
        """
        self.rows(query, {"me": self.server_id})

    def servers(self) -> list[PeerServer]:
        """Return all servers with a recent report, oldest first."""
        query = f"""
            SELECT {SERVER_COLUMNS} FROM sandbox_server
            WHERE seen_at > now() - interval '{CLAIM_SECONDS} seconds' ORDER BY started_at, id
        """
        return [PeerServer(*row) for row in self.rows(query)]
