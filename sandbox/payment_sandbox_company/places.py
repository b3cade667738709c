"""What a project needs of a database that several servers share, and what one server knows of its row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.projects.calling import Part
from payment_sandbox.projects.clock import Clock, RealTime
from payment_sandbox.projects.outbox import QueuedDelivery
from payment_sandbox.projects.store import HistoryRow
from payment_sandbox.storage.codec import NotStored, decode, encode
from payment_sandbox.storage.rows import Row, RowChanges, RowDatabase

JOB: Final = "jobs"
CLAIM_SECONDS: Final = 10.0
"""How long a claim holds after it was last renewed, on the database's clock."""

STOPS: Final = ":stops"  # after the name of a hold of the clock that is to end
LOST: Final = -1  # the version of what memory has and the database has not


class Head(NamedTuple):
    """The row of a project: its newest version, and who has claimed what of it."""

    version: int
    last: str  # the commit that made it
    complete_from: int  # the oldest version from which all deleted records are still listed
    courier: str | None
    clock_holder: str | None
    is_watched: bool
    chosen: str | None = None  # like the next, None if memory has this version already
    counters: str | None = None


class Changes(NamedTuple):
    """What was written after a version."""

    head: Head
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class SharedWritten(RowChanges):
    """A change set as it is written, with what other servers have to know."""

    part: Part
    courier: str | None
    clock_holder: str | None
    due_in_seconds: float | None
    unused_seconds_max: float | None


class Undecided(NotStored):
    """A commit was sent, and the database does not say whether it happened."""

    def __init__(self, place: str, reason: str, request_id: str) -> None:
        super().__init__(place, reason, is_full=False)
        self.args = (
            f"whether this has happened is not known, because {place} broke off: {reason}; "
            f"ask again with the header Idempotency-Key: {request_id}",
        )


class Session(Protocol):
    """A transaction that has locked the row of a project."""

    head: Head | None
    """None: there is no such project."""

    def changes(self, since: int) -> Changes:
        """What was written after a version."""

    def commit(self, written: SharedWritten) -> int:
        """Write, and commit; returns the new version.

        Raises:
            NotStored: nothing was written; or, if it is ``Undecided``, nobody knows.
        """

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only who has claimed what, and commit."""

    def end(self) -> None:
        """Undo what was not committed, and unlock the row."""


class SharedDatabase(RowDatabase, Protocol):
    """What a project needs of its database."""

    server_id: str
    real: RealTime
    unflushed: dict[str, Any]
    """The projects whose journals or events have something new, by their ids."""
    generation: int
    """Rises whenever a connection breaks: the next one may lead to a standby without the newest commits."""

    def has_commit(self, project_id: str, version: int, last: str) -> bool:
        """Whether it has a commit that this server knows."""

    def begin(self, project_id: str, known_version: int) -> Session:
        """Lock a project's row.

        Raises:
            NotStored: the database does not answer in time.
        """

    def changes(self, project_id: str, since: int) -> Changes | None:
        """What was written after a version, without a lock; None if there is no such project."""

    def add(self, written: SharedWritten) -> int:
        """Add a project; returns its version."""

    def newer_history(self, project_id: str, since: datetime | None) -> tuple[list[HistoryRow], datetime]:
        """What other servers have written to a journal since a time; and the time of the next call."""

    def answer(self, project_id: str, request_id: str) -> str | None:
        """What was answered to a request that has happened; None if it has not."""

    def put_events(self, events: Sequence[tuple[str, str, str]]) -> None:
        """Let other servers know of events: project, kind and data."""

    def watch(self, project_ids: Sequence[str]) -> None:
        """Let other servers put events of these projects, for some seconds."""


class Anchor(NamedTuple):
    """A time that a clock has shown, and when that was on the host's clock."""

    clock: Clock
    at: datetime
    real_at: datetime


@dataclass(slots=True)
class Place:
    """What this server knows of a project's row, and which claims it has."""

    project_id: str
    server_id: str
    version: int = 0  # 0: it is not in the database
    last: str = ""  # the commit that made this version
    chosen: str | None = None  # as it was read last
    jobs: dict[int, QueuedDelivery] = field(default_factory=dict)  # oldest first
    queued: set[int] = field(default_factory=set)  # that are in this server's outbox
    courier: str | None = None
    clock_holder: str | None = None
    own_hold: str | None = None  # of the clock, by an advance on this server
    lets_clock_go: bool = False
    leaves: bool = False  # the queue to whichever server gets a listener
    is_watched: bool = False
    anchor: Anchor | None = None
    session: Session | None = None
    generation: int = 0  # of the database's connections, when memory was last read
    holds: int = 0  # of the clock so far

    def note(self, head: Head) -> None:
        """Note who has claimed what."""
        self.courier, self.clock_holder, self.is_watched = head.courier, head.clock_holder, head.is_watched

    def note_own(self, head: Head) -> None:
        """Note which claims this server has, while the row is locked: an older head would mislead."""
        holder = (head.clock_holder or "").removesuffix(STOPS)
        if self.own_hold is not None and holder != self.own_hold:
            self.own_hold, self.lets_clock_go = None, False  # the claim has run out, or was released
        if self.own_hold is None and holder.partition(":")[0] == self.server_id:
            self.own_hold, self.lets_clock_go = holder, True  # claimed by a commit whose answer was lost


def job_body(queued: QueuedDelivery) -> str:
    """What is stored of a webhook that waits; servers of other versions read it, too."""
    plain: dict[str, Any] = encode(queued)
    del plain["job"]  # its id says it
    return json.dumps(plain if queued.is_changed else {**plain, "changed": None})


def read_job(number: int, body: str) -> QueuedDelivery:
    """A stored webhook that waits."""
    data: dict[str, Any] = json.loads(body)
    if data["changed"] is None:
        del data["changed"]
    queued: QueuedDelivery = decode(QueuedDelivery, {**data, "job": number}, f"{JOB}.{number}")
    return queued


def last_of(part: Part) -> str:
    """The name of a commit."""
    return f"{part.request_id}/{part.number}"
