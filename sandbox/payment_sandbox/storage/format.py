"""A snapshot as a document: its parts and their types."""

from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.vault import Credential
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.faults import Use

PROBLEM_LENGTH_MAX: Final = 500
FORMAT: Final = "payment-orders-sandbox/2"


class StoredIds(NamedTuple):
    """Where the identifiers of new projects go on."""

    seed: int
    counts: dict[str, int]


class StateRefused(Exception):
    """A state file cannot be used; it is unchanged."""


def in_one_line(problem: object) -> str:
    """What is wrong, cut and without line breaks."""
    return " ".join(str(problem).split())[:PROBLEM_LENGTH_MAX]


class NotStored(Exception):
    """The state file could not be written, so nothing has changed."""

    def __init__(self, path: Path, reason: str, *, is_full: bool) -> None:
        super().__init__(f"nothing has changed, because {path.name} could not be written: {reason}")
        self.is_full = is_full


class ServerRows(NamedTuple):
    """What a state file holds for the server as a whole."""

    ids: StoredIds | None = None
    deleted: tuple[str, ...] = ()


class AgendaEntry(NamedTuple):
    """A command, when it is due, and the number that orders ties."""

    at: datetime
    sequence: int
    command: Command


class Snapshot(NamedTuple):
    """The whole state of a project, except its ids and its key."""

    format: str
    now: datetime
    clock_mode: str
    clock_rate: float
    settings: dict[str, Any]
    scenario: dict[str, Any]
    rule_uses: tuple[tuple[int, int], ...]
    scenario_faults: tuple[Use, ...]
    faults: dict[str, Any]
    fault_uses: tuple[Use, ...]
    seed: int
    id_series: int
    id_counts: dict[str, int]
    epoch: int
    sequence: int
    agenda: tuple[AgendaEntry, ...]
    orders: tuple[Order, ...]
    credentials: tuple[Credential, ...]
    qr_requests: tuple[QrRequest, ...]
    deliveries: tuple[Delivery, ...]
    deliveries_dropped: int
    swapped: tuple[str, ...]
