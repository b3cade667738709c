"""The entries of a timeline: who told whom what."""

from datetime import datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.orders.actions import CUSTOMER
from payment_sandbox.projects.records import as_plain

SHOP: Final = "shop"
SERVICE: Final = "service"
BANK: Final = "bank"
SCREENING: Final = "screening"
PARTIES: Final = (CUSTOMER, SHOP, SERVICE, BANK, SCREENING)
KINDS: Final = (
    "request",
    "response",
    "status",
    "attempt-status",
    "deed",
    "outcome",
    "webhook",
    "webhook-response",
    "agenda-event",
    "failure",
)
OF_ORDER: Final = "/v1/orders/…/"
OF_ATTEMPT: Final = f"{OF_ORDER}transactions/…/"
NAMES: Final = {"sender": "from", "receiver": "to"}  # in the API
EVIDENCE_FORMAT: Final = "payment-orders-sandbox-evidence/1"


class Happening(NamedTuple):
    """One thing that happened: who told whom what; ``cause`` is the id of an earlier one.

    ``status`` is an HTTP status, or the status that an order or attempt has reached. ``failed`` marks what
    was refused, lost or declined.
    """

    id: str
    at: datetime
    real_at: datetime
    sender: str
    receiver: str
    kind: str
    label: str
    status: int | str | None
    cause: str | None
    order_id: str | None
    failed: bool = False
    rule: str | None = None
    detail: str | None = None


def short_path(path: str) -> str:
    """A path with its long ids left out, and without the order where it goes on after it."""
    bare = UUID.sub("…", path)
    if bare == OF_ORDER or not bare.startswith(OF_ORDER):
        return bare
    return f"…/{bare.removeprefix(OF_ATTEMPT).removeprefix(OF_ORDER)}"


def as_mapping(happening: Happening) -> dict[str, Any]:
    """A happening under the names of the API, with its times as text."""
    return {NAMES.get(name, name): value for name, value in as_plain(happening).items()}
