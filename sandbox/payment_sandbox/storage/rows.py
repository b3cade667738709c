"""How a durable store keeps a project: as rows, one for each record, and how the project comes back."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from payment_sandbox.kernel.times import timestamp
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.projects.store import ChangeSet, Storage
from payment_sandbox.storage.codec import FORMAT, AgendaEntry, Snapshot, decode, encode
from payment_sandbox.storage.history import load_history
from payment_sandbox.storage.memory import MemoryStore
from payment_sandbox.storage.snapshot import resume

ORDER: Final = "orders"
CREDENTIAL: Final = "credentials"
QR_REQUEST: Final = "qr_requests"
DELIVERY: Final = "deliveries"
DUE: Final = "agenda"
KINDS: Final = (ORDER, CREDENTIAL, QR_REQUEST, DELIVERY, DUE)

log = logging.getLogger(__name__)


class Row(NamedTuple):
    """A record as it is stored."""

    kind: str
    id: str
    body: str


class StoredProject(NamedTuple):
    """A stored project: its identity, and its state as a snapshot document."""

    identity: Mapping[str, Any]
    state: dict[str, Any]
    real_at: str | None  # when it was written; a running clock continues from there
    newest_number: int | None = None  # of its journal

    @classmethod
    def read(
        cls,
        identity: str,
        chosen: str,
        counters: str,
        rows: Iterable[tuple[str, str]],
        newest_number: int | None = None,
    ) -> "StoredProject":
        """A project from its columns, and the kind and body of its records in the order of their creation.

        Raises:
            ValueError, TypeError, KeyError: they are damaged.
        """
        state: dict[str, Any] = {**json.loads(chosen), **json.loads(counters)}
        state |= {kind: [] for kind in KINDS}
        for kind, body in rows:
            state[kind].append(_plain(kind, body))
        state["now"] = state.pop("anchor", state["now"])  # which a running clock goes on from
        return cls(json.loads(identity), state, state.pop("real_at", None), newest_number)


def _plain(kind: str, body: str) -> Any:
    """A stored record as a snapshot has it: an agenda entry is stored without the names of its fields."""
    data = json.loads(body)
    return data if kind != DUE else dict(zip(AgendaEntry._fields, data, strict=True))


@cache
def _types() -> Mapping[str, Any]:
    """The type of the records of each kind."""
    hints = get_type_hints(Snapshot)
    return {kind: get_args(hints[kind])[0] for kind in KINDS}


def read_record(kind: str, item_id: str, body: str) -> Any:
    """A stored record.

    Raises:
        Invalid: it is damaged.
    """
    return decode(_types()[kind], _plain(kind, body), f"{kind}.{item_id}")


class DurableStore(MemoryStore, ABC):
    """Reads from memory; a commit is written first, and then swapped into memory."""

    is_durable = True

    def __init__(self) -> None:
        super().__init__()
        self.is_new = True

    def save(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Write it, with the number of webhooks that were dropped."""
        if change.counters is not None:
            dropped = self.deliveries_dropped + len(surplus)
            change = change._replace(counters=replace(change.counters, deliveries_dropped=dropped))
        self.write(change, surplus)
        self.is_new = False

    @abstractmethod
    def write(self, change: ChangeSet, surplus: Sequence[str]) -> None:
        """Write a change set and delete the surplus webhooks, or nothing of it.

        The first one of a store deletes what an earlier epoch left.
        """

    def load(self, change: ChangeSet) -> None:
        """Load into memory what is already written."""
        self.is_new = False
        super().load(change)


def identity_body(identity: Identity) -> str:
    """What is stored of an identity."""
    return json.dumps(encode(identity))


def chosen_body(change: ChangeSet) -> str | None:
    """What is stored of settings, scenario and faults; None if they did not change."""
    return json.dumps(encode(change.chosen)) if change.chosen is not None else None


def counters_body(change: ChangeSet, real_at: datetime) -> str | None:
    """What is stored of clock and counters, with the real time; None if they did not change."""
    if change.counters is None:
        return None
    return json.dumps({**encode(change.counters), "real_at": timestamp(real_at)})


def rows_of(change: ChangeSet) -> Iterator[Row]:
    """Every record of a change set."""
    for kind, item_id, record in change.records():
        yield Row(kind, item_id, json.dumps(encode(record)))
    for due in change.dues:
        yield Row(DUE, str(due.sequence), json.dumps(encode((due.at, due.sequence, due.item))))


def read_identity(data: Mapping[str, Any]) -> Identity:
    """A stored identity.

    Raises:
        Invalid: it is damaged.
    """
    identity: Identity = decode(Identity, data, "identity")
    if identity.start.mode not in (RUNNING, FROZEN):
        raise Invalid([Violation("identity.start.mode", f"must be {RUNNING} or {FROZEN}")])
    for name in ("project_id", "merchant_id", "key_digest"):
        if not getattr(identity, name):
            raise Invalid([Violation(f"identity.{name}", "must not be empty")])
    return identity


def resumed_project(
    identity: Identity, stored: StoredProject, services: Services, storage: Storage, place: object = None
) -> Project:
    """A project as it was stored; ``place`` says where, for what is logged; None: without its records.

    Raises:
        Invalid: its state is inconsistent.
    """
    project = Project(identity, Settings(), services, storage)
    real_at = decode(datetime, stored.real_at, "real_at") if stored.real_at is not None else None
    resume(project, {"format": FORMAT, **stored.state}, real_at)
    if stored.newest_number is not None:
        load_history(project, stored.newest_number)
    made, has = project.epoch.ids.counts.get("order", 0), project.epoch.orders_created
    if place is not None and has < made:
        log.warning("%s: project %s has %d orders, but %d were made", place, identity.project_id, has, made)
    return project
