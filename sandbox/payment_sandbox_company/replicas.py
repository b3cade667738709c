"""A server's replica of a project's row in a shared database, and a transaction on the row."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.projects.caller import RequestCommit
from payment_sandbox.projects.clock import ProjectClock
from payment_sandbox.projects.queued_deliveries import QueuedDelivery
from payment_sandbox.storage.codec import NotStored, decode, encode
from payment_sandbox.storage.rows import Row, RowChanges

JOB: Final = "jobs"
CLAIM_SECONDS: Final = 10.0
"""The lifetime of a claim after its last renewal, on the database's clock."""

IDLE_LOCK_SECONDS: Final = 6.0
"""How long a lost connection may keep a row locked; shorter than a claim that was due for renewal.

While the row is locked, its courier can neither record an attempt nor renew its claim. If the claim ended
first, another server would send the webhook again.
"""

STOP_SUFFIX: Final = ":stops"  # appended to the clock holder to ask it to stop
LOST_VERSION: Final = -1  # the version of a replica whose last commit is missing from the database


class Head(NamedTuple):
    """The row of a project: its newest version, and its claims."""

    version: int
    last: str  # the commit of this version
    complete_from: int  # the oldest version from which the tombstones are complete
    courier: str | None
    clock_holder: str | None
    epoch_version: int  # the version that began the epoch
    chosen: str | None = None  # this and the next field are None if memory has this version
    counters: str | None = None


class Changes(NamedTuple):
    """The changes after a version."""

    head: Head
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class SharedChanges(RowChanges):
    """A change set to write, with data for other servers."""

    part: RequestCommit
    courier: str | None
    clock_holder: str | None
    due_in_seconds: float | None
    unused_seconds_max: float | None


class UnknownOutcome(NotStored):
    """The outcome of a sent commit is unknown."""

    def __init__(self, place: str, reason: str, request_id: str) -> None:
        super().__init__(place, reason, is_full=False)
        self.args = (
            f"whether the call was executed is unknown, because the connection to {place} failed: {reason}; "
            f"retry with the header Idempotency-Key: {request_id}",
        )


class Session(Protocol):
    """A transaction that locks a project's row."""

    head: Head | None
    """The row; None if the project does not exist."""

    def changes(self, since: int) -> Changes:
        """Read the changes after a version."""

    def commit(self, row_changes: SharedChanges) -> int:
        """Write a change set, and commit; return the new version.

        Raises:
            NotStored: nothing was written.
            UnknownOutcome: the commit may or may not have succeeded.
        """

    def claim(self, courier: str | None, clock_holder: str | None, due_in_seconds: float | None) -> None:
        """Write only the claims, and commit."""

    def end(self) -> None:
        """Roll back an uncommitted transaction, and unlock the row."""


class Anchor(NamedTuple):
    """A reading of a project's clock, and the real time when it was read."""

    clock: ProjectClock
    at: datetime
    real_at: datetime


@dataclass(slots=True)
class Replica:
    """A server's replica of a project's row, with the server's own claims."""

    project_id: str
    server_id: str
    version: int = 0  # 0: not in the database yet
    last: str = ""  # the commit of this version
    epoch_version: int = 0  # the version that began the epoch
    chosen: str | None = None  # the last value read
    jobs: dict[int, QueuedDelivery] = field(default_factory=dict)  # oldest first
    queued: set[int] = field(default_factory=set)  # jobs in this server's outbox
    courier: str | None = None
    clock_holder: str | None = None
    own_hold: str | None = None  # this server's hold on the clock, during an advance
    releases_clock: bool = False  # whether the next commit releases the clock
    anchor: Anchor | None = None
    session: Session | None = None
    generation: int = 0  # the database's generation at the last refresh
    hold_count: int = 0  # how many times this server has held the clock

    def update_claims(self, head: Head) -> None:
        """Copy the claims of a head."""
        self.courier, self.clock_holder = head.courier, head.clock_holder

    def update_own_hold(self, head: Head) -> None:
        """Update this server's own hold on the clock from a head read under the lock."""
        holder = (head.clock_holder or "").removesuffix(STOP_SUFFIX)
        if self.own_hold is not None and holder != self.own_hold:
            self.own_hold, self.releases_clock = None, False  # the claim has expired, or was released
        if self.own_hold is None and holder.partition(":")[0] == self.server_id:
            self.own_hold, self.releases_clock = holder, True  # claimed by a commit whose result was lost


def encode_job(queued: QueuedDelivery) -> str:
    """Encode a queued webhook; servers of other versions read it, too."""
    data: dict[str, Any] = encode(queued)
    del data["job"]  # the row's id
    return json.dumps(data if queued.is_changed else {**data, "changed": None})


def read_job(number: int, body: str) -> QueuedDelivery:
    """Decode a queued webhook."""
    data: dict[str, Any] = json.loads(body)
    if data["changed"] is None:
        del data["changed"]
    queued: QueuedDelivery = decode(QueuedDelivery, {**data, "job": number}, f"{JOB}.{number}")
    return queued


def commit_name(part: RequestCommit) -> str:
    """Return the name of a commit, unique in its project."""
    return f"{part.request_id}/{part.number}"
