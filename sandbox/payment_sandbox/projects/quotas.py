"""Count the usage of stored records, and refuse changes beyond a quota.

Before a commit, every store computes the resulting usage, and asks the project's account. A request
that would exceed a quota of the project or the server is refused. Automatic changes
(due events, webhook attempts) are counted and never refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.orders.refusals import Refusal

MEGABYTE: Final = 1_000_000
REMEDY: Final = "reset or delete a project"


class QuotaReached(Refusal):
    """The change would exceed a quota of the project or the server; nothing has changed."""

    rule = "SET-08"


class Usage(NamedTuple):
    """The usage of a project: the number of orders and refunds, and the bytes of all its records."""

    orders: int = 0
    bytes: int = 0


class Quotas(NamedTuple):
    """The quotas of a server; None means unlimited.

    Bytes count the contents of a snapshot: orders, stored cards, QR requests, webhooks with their attempts,
    the agenda, settings, scenario and faults. The journal has a separate limit.
    """

    projects: int | None = None
    orders: int | None = None  # per project
    bytes: int | None = None  # per project
    total_bytes: int | None = None

    @property
    def needs_meter(self) -> bool:
        """Whether a quota limits orders or bytes."""
        return self.orders is not None or self.needs_bytes

    @property
    def needs_bytes(self) -> bool:
        """Whether a quota limits bytes."""
        return self.bytes is not None or self.total_bytes is not None

    def refuse_growth(self, before: Usage, after: Usage, total_bytes: int) -> None:
        """Refuse a change that increases the usage of a project beyond a quota.

        Raises:
            QuotaReached: names the quota, its usage, and a remedy.
        """
        more_orders, more_bytes = after.orders - before.orders, after.bytes - before.bytes
        if self.orders is not None and more_orders > 0 and after.orders > self.orders:
            most = f"a project on this server may have {self.orders} orders (--max-orders)"
            used, more = f"this one has {before.orders}", str(more_orders)
        elif self.bytes is not None and more_bytes > 0 and after.bytes > self.bytes:
            most = f"a project on this server may store {_megabytes(self.bytes)} (--max-megabytes)"
            used, more = f"this one has {_megabytes(before.bytes)}", _megabytes(more_bytes)
        elif self.total_bytes is not None and 0 < more_bytes > self.total_bytes - total_bytes:
            most = f"this server may store at most {_megabytes(self.total_bytes)} (--max-megabytes-in-all)"
            used, more = f"it has {_megabytes(total_bytes)}", _megabytes(more_bytes)
        else:
            return
        raise QuotaReached(f"{most}; {used}, and this change would add {more}: {REMEDY}")


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:.6f}".rstrip("0").rstrip(".") + " MB"


NO_QUOTAS: Final = Quotas()


class Meter:
    """The total usage of all projects on a server."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.lock = Lock()  # guards the total and the usage of every account
        self.total_bytes = 0


class Account:
    """The usage of one project across epochs, part of the server's total while the project is open."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._is_open = False
        self.usage = Usage()

    @property
    def needs_bytes(self) -> bool:
        """Whether a quota counts bytes."""
        return self._meter.quotas.needs_bytes

    def open(self) -> None:
        """Add this project to the server's total."""
        with self._meter.lock:
            self._meter.total_bytes += 0 if self._is_open else self.usage.bytes
            self._is_open = True

    def close(self) -> None:
        """Remove this project from the server's total, because the project was deleted or moved."""
        with self._meter.lock:
            self._meter.total_bytes -= self.usage.bytes if self._is_open else 0
            self._is_open = False

    def excess(self, usage: Usage) -> int:
        """Return the bytes by which this usage exceeds the quota of the project or of the server."""
        quotas, in_all = self._meter.quotas, self._meter.total_bytes + usage.bytes - self.usage.bytes
        return max(
            usage.bytes - quotas.bytes if quotas.bytes is not None else 0,
            in_all - quotas.total_bytes if quotas.total_bytes is not None else 0,
        )

    def set_usage(self, usage: Usage) -> None:
        """Set the project's usage."""
        with self._meter.lock:
            self._count(usage)

    def refuse_growth(self, more_bytes: int) -> None:
        """Refuse growth up front, while it can still be refused.

        Raises:
            QuotaReached: the growth would exceed a quota.
        """
        usage = self.usage
        self._refuse(usage._replace(bytes=usage.bytes + more_bytes))

    @contextmanager
    def change_usage(self, usage: Usage, *, ignores_quotas: bool) -> Iterator[None]:
        """Set the usage after a change, and restore the previous usage if the write in the context fails.

        Raises:
            QuotaReached: the change exceeds a quota, and is not due.
        """
        with self._meter.lock:
            before = self.usage
            if not ignores_quotas:
                self._refuse(usage)
            self._count(usage)
        try:
            yield
        except BaseException:
            self.set_usage(before)
            raise

    def _refuse(self, usage: Usage) -> None:
        self._meter.quotas.refuse_growth(self.usage, usage, self._meter.total_bytes)

    def _count(self, usage: Usage) -> None:
        if self._is_open:
            self._meter.total_bytes += usage.bytes - self.usage.bytes
        self.usage = usage
