"""The row of a project in a shared database: what servers read from it, and write to it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from payment_sandbox.projects.caller import RequestCommit
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
