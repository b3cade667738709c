"""A snapshot as a document: its parts and their types."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.commands import Command
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.vault import Credential
from payment_sandbox.orders.webhooks import Delivery
from payment_sandbox.projects.faults import Use

FORMAT: Final = "payment-orders-sandbox/2"


class StateRefused(Exception):
    """A state file cannot be used; it is unchanged."""


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
