"""How much a server keeps, and the refusal of what would be more."""

from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.orders.refusals import Refusal

MEGABYTE: Final = 1_000_000


class QuotaReached(Refusal):
    """The project or the server keeps as much as it may; what there is goes on."""

    rule = "SET-08"


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

    def refuse_more(self, orders: int, bytes_kept: int, bytes_in_all: int) -> None:
        """Refuse a new order, refund or QR request in a project that has these, once a quota is reached.

        Raises:
            QuotaReached: names the quota.
        """
        if self.orders is not None and orders >= self.orders:
            most = f"a project may have {self.orders} orders here (--max-orders)"
        elif self.bytes is not None and bytes_kept >= self.bytes:
            most = f"a project may keep {self.bytes / MEGABYTE:g} MB here (--max-megabytes)"
        elif self.bytes_in_all is not None and bytes_in_all >= self.bytes_in_all:
            most = f"this server may keep {self.bytes_in_all / MEGABYTE:g} MB (--max-megabytes-in-all)"
        else:
            return
        raise QuotaReached(f"{most}; reset a project, or delete one")


NO_QUOTAS: Final = Quotas()


class Meter:
    """Counts the bytes of all projects of a server."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.bytes_in_all = 0

    def add(self, count: int) -> None:
        """Add the bytes of new records, or take away those of old ones."""
        with self._lock:
            self.bytes_in_all += count
