"""What servers tell each other through their database: journals, events, claims, and who is there."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from psycopg import Connection

from payment_sandbox.projects.store import HistoryRow
from payment_sandbox.storage.dialects import HISTORY, HISTORY_COLUMNS, POSTGRESQL, localized
from payment_sandbox.storage.history import KEPT_MAX
from payment_sandbox_company.connections import STATEMENT_SECONDS, Connections, Row
from payment_sandbox_company.places import CLAIM_SECONDS

REQUESTS_KEPT: Final = "1 hour"
UNDER_WAY: Final = "10 seconds"  # longer than a statement may take
LATER: Final = f"clock_timestamp() + interval '{CLAIM_SECONDS} seconds'"


def as_json(rows: Sequence[Sequence[Any]], names: Sequence[str]) -> str:
    """Rows as the parameter ``rows``: the driver takes much longer for arrays."""
    return json.dumps([dict(zip(names, row, strict=True)) for row in rows])


def table_of(*names: str) -> str:
    """The table of the parameter ``rows``, named ``new``, with the place of each row."""
    columns = ", ".join(f"{name} {'bigint' if name == 'number' else 'text'}" for name in names)
    return f"""
        ROWS FROM (json_to_recordset(%(rows)s::json) AS ({columns}))
        WITH ORDINALITY AS new ({", ".join(names)}, place)
    """


HOLDS_CLOCK: Final = "split_part(clock_holder, ':', 1) = %(me)s"
UPDATE: Final = """
    UPDATE sandbox_project SET {} WHERE id IN (
        SELECT id FROM sandbox_project WHERE {} FOR UPDATE SKIP LOCKED)
"""
"""Changes projects whose rows nobody has locked."""
PUT_HISTORY: Final = f"""
    INSERT INTO sandbox_history (project, kind, number, server, body)
    SELECT new.project, new.kind, new.number, %(me)s, new.body
    FROM {table_of("project", *HistoryRow._fields)}
    WHERE EXISTS (SELECT FROM sandbox_project p WHERE p.id = new.project)
    ON CONFLICT (project, number) DO NOTHING
"""


class PeerServer(NamedTuple):
    """A server of the same sandbox."""

    id: str
    url: str
    version: str
    is_draining: bool
    projects: int


SERVER_COLUMNS: Final = ", ".join(PeerServer._fields)


class Bulletin(Connections):
    """The part of a shared database that is about no project's state."""

    server_id: str

    def __init__(
        self,
        address: str,
        monotonic_seconds: Callable[[], float],
        prepare: "Callable[[Connection[Any]], None]",
    ) -> None:
        super().__init__(address, monotonic_seconds, prepare)
        self.unflushed: dict[str, Any] = {}

    # Journals

    def write_histories(self, rows: Sequence[tuple[str, HistoryRow]]) -> None:
        """Write records of the journals of several projects."""
        if not rows:
            return
        flat = [(project_id, *row) for project_id, row in rows]
        values = {"me": self.server_id, "rows": as_json(flat, ("project", *HistoryRow._fields))}
        self.rows(PUT_HISTORY, values)

    def forget_history(self, project_id: str) -> None:
        """Delete the oldest records of a journal."""
        query = f"""
            DELETE FROM sandbox_history WHERE project = %(id)s AND number <= (
                SELECT number FROM sandbox_history WHERE project = %(id)s
                ORDER BY number DESC OFFSET {KEPT_MAX} LIMIT 1)
        """
        self.rows(query, {"id": project_id})

    def newer_history(self, project_id: str, since: datetime | None) -> tuple[list[HistoryRow], datetime]:
        """What other servers have written to a journal since a time; and the time of the next call.

        Without a time, it is the whole journal. What was under way at that time is read again.
        """
        query = f"""
            SELECT now(), {HISTORY_COLUMNS} FROM sandbox_history
            WHERE project = %(id)s AND (%(since)s::timestamptz IS NULL
                OR server <> %(me)s AND made_at > %(since)s::timestamptz - interval '{UNDER_WAY}')
            UNION ALL SELECT now(), '', 0, '' ORDER BY 3
        """
        with self.asking(4 * STATEMENT_SECONDS) as run:
            values = {"id": project_id, "me": self.server_id, "since": since}
            (now, *_), *rows = run.execute(query, values).fetchall()
        return [HistoryRow(*row[1:]) for row in rows], now

    def put_events(self, events: Sequence[tuple[str, str, str]]) -> None:
        """Let other servers know of events: project, kind and data."""
        query = f"""
            INSERT INTO sandbox_event (project, server, kind, data)
            SELECT new.project, %(me)s, new.kind, new.data
            FROM {table_of("project", "kind", "data")} ORDER BY new.place
        """
        self.rows(query, {"me": self.server_id, "rows": as_json(events, ("project", "kind", "data"))})

    def watch(self, project_ids: Sequence[str]) -> None:
        """Let other servers put events of these projects, for some seconds."""
        self.rows(UPDATE.format(f"watched_until = {LATER}", "id = ANY(%s)"), (list(project_ids),))

    def newer_events(self, project_ids: Sequence[str]) -> list[Row]:
        """The events of other servers in the last seconds: number, project, kind, data."""
        query = f"""
            SELECT position, project, kind, data FROM sandbox_event
            WHERE project = ANY(%s) AND server <> %s AND made_at > now() - interval '{UNDER_WAY}'
            ORDER BY position
        """
        return self.rows(query, (list(project_ids), self.server_id))

    def read_history(self, project_id: str, number_max: int) -> Sequence[HistoryRow]:
        """The records of a journal up to a number, oldest first."""
        values = {"id": project_id, "number": number_max}
        rows = self.rows(localized(POSTGRESQL, HISTORY), values, 4 * STATEMENT_SECONDS)
        return [HistoryRow(*row) for row in rows]

    # Claims and servers

    def attend(self, most: int) -> list[str]:
        """Projects that somebody has to look after: something is due, or a claim has run out."""
        is_due = "attend_at <= now() ORDER BY attend_at LIMIT %s"
        query = UPDATE.format(f"attend_at = {LATER}", is_due)
        return [project_id for (project_id,) in self.rows(f"{query} RETURNING id", (most,))]

    def renew(self, project_ids: Sequence[str]) -> None:
        """Renew this server's claims of these projects."""
        renewed = f"""
            attend_at = {LATER},
            courier_until = CASE WHEN courier = %(me)s THEN {LATER} ELSE courier_until END,
            clock_until = CASE WHEN {HOLDS_CLOCK} THEN {LATER} ELSE clock_until END
        """
        is_claimed = f"id = ANY(%(ids)s) AND (courier = %(me)s OR {HOLDS_CLOCK}) ORDER BY id"
        self.rows(UPDATE.format(renewed, is_claimed), {"me": self.server_id, "ids": list(project_ids)})

    def note_used(self, project_ids: Sequence[str]) -> None:
        """Note that these projects were used just now."""
        self.rows(UPDATE.format("used_at = now()", "id = ANY(%s)"), (list(project_ids),))

    def forget_requests(self) -> None:
        """Delete the answers to requests that nobody asks again."""
        self.rows(f"""
            DELETE FROM sandbox_request WHERE made_at < now() - interval '{REQUESTS_KEPT}';
            DELETE FROM sandbox_event WHERE made_at < now() - interval '1 minute';
            DELETE FROM sandbox_note WHERE made_at < now() - interval '{REQUESTS_KEPT}'
        """)

    def report(self, server: PeerServer) -> None:
        """Say that this server is alive, for a list that people read."""
        query = f"""
            INSERT INTO sandbox_server ({SERVER_COLUMNS}) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (id) DO UPDATE SET seen_at = now(), url = excluded.url,
                is_draining = excluded.is_draining, projects = excluded.projects;
            DELETE FROM sandbox_server WHERE seen_at < now() - interval '1 hour'
        """
        self.rows(query, server)

    def leave(self) -> None:
        """Remove this server from the list, and give up its claims."""
        query = """
            UPDATE sandbox_project SET courier = NULL, courier_until = NULL, attend_at = now()
            WHERE courier = %(me)s;
            DELETE FROM sandbox_server WHERE id = %(me)s
        """
        self.rows(query, {"me": self.server_id})

    def servers(self) -> list[PeerServer]:
        """All servers that have localized a moment ago that they are alive, oldest first."""
        query = f"""
            SELECT {SERVER_COLUMNS} FROM sandbox_server
            WHERE seen_at > now() - interval '{CLAIM_SECONDS} seconds' ORDER BY started_at, id
        """
        return [PeerServer(*row) for row in self.rows(query)]
