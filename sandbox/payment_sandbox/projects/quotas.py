"""How much a server keeps: what is counted, and the refusal of what would be more than a quota allows.

Every store counts what a commit makes it keep, and asks its project's account before it writes anything. A
request is refused if it would make the project or the server keep more than it may. What the service owes
(events that are due, attempts of webhooks) is counted and never refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final, NamedTuple

from payment_sandbox.orders.refusals import Refusal

MEGABYTE: Final = 1_000_000
WHAT_TO_DO: Final = "reset a project, or delete one"


class QuotaReached(Refusal):
    """It would be more than the project or the server may keep; nothing has changed."""

    rule = "SET-08"


class Usage(NamedTuple):
    """What a project keeps: orders with their refunds, and the bytes of all its records."""

    orders: int = 0
    bytes: int = 0


class Quotas(NamedTuple):
    """How much a server takes; None means any number.

    Bytes are those of all that a snapshot holds: orders, stored cards, QR requests, webhooks with their
    attempts, the agenda, settings, scenario and faults. The journal has a bound of its own.
    """

    projects: int | None = None
    orders: int | None = None  # of each project
    bytes: int | None = None  # of each project
    bytes_in_all: int | None = None

    @property
    def needs_meter(self) -> bool:
        """Whether anything has to be counted."""
        return self.orders is not None or self.needs_bytes

    @property
    def needs_bytes(self) -> bool:
        """Whether bytes have to be counted."""
        return self.bytes is not None or self.bytes_in_all is not None

    def refuse_growth(self, before: Usage, after: Usage, bytes_in_all: int) -> None:
        """Refuse a change that makes a project keep more, beyond a quota.

        Raises:
            QuotaReached: names the quota, what is used of it, and what to do.
        """
        more_orders, more_bytes = after.orders - before.orders, after.bytes - before.bytes
        if self.orders is not None and more_orders > 0 and after.orders > self.orders:
            most = f"a project may have {self.orders} orders here (--max-orders)"
            used, more = f"this one has {before.orders}", f"{more_orders} more"
        elif self.bytes is not None and more_bytes > 0 and after.bytes > self.bytes:
            most = f"a project may keep {_megabytes(self.bytes)} here (--max-megabytes)"
            used, more = f"this one keeps {_megabytes(before.bytes)}", f"{_megabytes(more_bytes)} more"
        elif self.bytes_in_all is not None and 0 < more_bytes > self.bytes_in_all - bytes_in_all:
            most = f"this server may keep {_megabytes(self.bytes_in_all)} (--max-megabytes-in-all)"
            used, more = f"it keeps {_megabytes(bytes_in_all)}", f"{_megabytes(more_bytes)} more"
        else:
            return
        raise QuotaReached(f"{most}; {used}, and this would be {more}: {WHAT_TO_DO}")


def _megabytes(count: int) -> str:
    return f"{count / MEGABYTE:.6f}".rstrip("0").rstrip(".") + " MB"


NO_QUOTAS: Final = Quotas()


class Meter:
    """Counts what all projects of a server keep."""

    def __init__(self, quotas: Quotas) -> None:
        self.quotas = quotas
        self.lock = Lock()  # guards what follows, and the usage of every account
        self.bytes_in_all = 0


class Account:
    """What one project keeps, in whichever epoch; the server's meter counts it while the project is open."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._is_open = False
        self.usage = Usage()

    @property
    def needs_bytes(self) -> bool:
        """Whether a quota counts bytes."""
        return self._meter.quotas.needs_bytes

    def open(self) -> None:
        """Count this project from now on: it belongs to the server."""
        with self._meter.lock:
            self._meter.bytes_in_all += 0 if self._is_open else self.usage.bytes
            self._is_open = True

    def close(self) -> None:
        """Count this project no longer: it was deleted, or has moved."""
        with self._meter.lock:
            self._meter.bytes_in_all -= self.usage.bytes if self._is_open else 0
            self._is_open = False

    def excess(self, usage: Usage) -> int:
        """By how many bytes this is over the quota of a project or, with this, over that of the server."""
        quotas, in_all = self._meter.quotas, self._meter.bytes_in_all + usage.bytes - self.usage.bytes
        return max(
            usage.bytes - quotas.bytes if quotas.bytes is not None else 0,
            in_all - quotas.bytes_in_all if quotas.bytes_in_all is not None else 0,
        )

    def note(self, usage: Usage) -> None:
        """Count what the project keeps now."""
        with self._meter.lock:
            self._count(usage)

    def refuse_growth(self, more_bytes: int) -> None:
        """Refuse what will be kept later, while it can still be refused.

        Raises:
            QuotaReached: it would be too much.
        """
        usage = self.usage
        self._refuse(usage._replace(bytes=usage.bytes + more_bytes))

    @contextmanager
    def changing_to(self, usage: Usage, *, is_due: bool) -> Iterator[None]:
        """Count what a change makes the project keep, unless writing it fails inside.

        Raises:
            QuotaReached: it would be too much, and is not ``is_due``.
        """
        with self._meter.lock:
            before = self.usage
            if not is_due:
                self._refuse(usage)
            self._count(usage)
        try:
            yield
        except BaseException:
            self.note(before)
            raise

    def _refuse(self, usage: Usage) -> None:
        self._meter.quotas.refuse_growth(self.usage, usage, self._meter.bytes_in_all)

    def _count(self, usage: Usage) -> None:
        if self._is_open:
            self._meter.bytes_in_all += usage.bytes - self.usage.bytes
        self.usage = usage
