"""How much a server keeps, and the refusal of what would be more."""

from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.orders.refusals import Refusal

MEGABYTE: Final = 1_000_000


class Quotas(NamedTuple):
    """How much a server takes; None means any number.

    Bytes are those of the records as a snapshot has them: orders, stored cards, QR requests and webhooks.
    """

    projects: int | None = None
    orders: int | None = None  # of each project
    bytes: int | None = None  # of each project
    bytes_in_all: int | None = None

    @property
    def needs_meter(self) -> bool:
        """Whether bytes have to be counted."""
        return self.bytes is not None or self.bytes_in_all is not None


NO_QUOTAS: Final = Quotas()


class QuotaReached(Refusal):
    """The project or the server keeps as much as it may; what there is goes on."""

    rule = "SET-08"


class Meter:
    """Counts the bytes of all projects of a server."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.bytes_in_all = 0

    def add(self, count: int) -> None:
        """Add the bytes of new records, or take away those of old ones."""
        with self._lock:
            self.bytes_in_all += count
