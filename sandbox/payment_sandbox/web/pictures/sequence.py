"""The content of a sequence picture: its lanes, and its rows from top to bottom."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.operations.happenings import BANK, SCREENING, SERVICE, SHOP, Happening
from payment_sandbox.orders.actions import CUSTOMER

ROWS_MAX: Final = 200
LANES: Final = {
    CUSTOMER: "Customer",
    SHOP: "Your shop",
    SERVICE: "Service",
    BANK: "Bank",
    SCREENING: "Screening",
}
ALWAYS: Final = (CUSTOMER, SHOP, SERVICE)
ANSWERS: Final = ("response", "webhook-response", "outcome")


class Row(NamedTuple):
    """One arrow, or a note on a lane if sender and receiver are the same.

    ``look`` is ``ok``, ``failed``, ``quiet`` or ``due``; ``time`` is the text of the time column, only where
    it changes; ``link`` is where a click leads.
    """

    sender: str
    receiver: str
    label: str
    look: str = "ok"
    is_answer: bool = False
    is_status: bool = False
    time: str = ""
    link: str | None = None
    title: str = ""


class Sequence(NamedTuple):
    """A whole picture; ``left_out`` counts the earlier rows that do not fit."""

    lanes: tuple[str, ...]
    rows: tuple[Row, ...]
    left_out: int = 0


class Due(NamedTuple):
    """Something that is still to come."""

    at: datetime
    label: str


Link = Callable[[Happening], str | None]
"""Where a click on a happening leads."""


def sequence(happenings: Iterable[Happening], due: Iterable[Due] = (), link: Link | None = None) -> Sequence:
    """The picture of what happened, and of what is due."""
    rows = list(_rows(happenings, link or _nowhere))
    shown = [*rows[-ROWS_MAX:], *_due(due)]
    told = {party for row in shown for party in (row.sender, row.receiver)}
    lanes = tuple(lane for lane in LANES if lane in ALWAYS or lane in told)
    return Sequence(lanes, tuple(shown), max(0, len(rows) - ROWS_MAX))


def _nowhere(happening: Happening) -> str | None:
    return None


def _rows(happenings: Iterable[Happening], link: Link) -> Iterator[Row]:
    told_at: datetime | None = None
    for happening in happenings:
        at = happening.at.replace(microsecond=0)
        time = "" if at == told_at else short_time(at, told_at)
        told_at = at
        yield Row(
            happening.sender,
            happening.receiver,
            happening.label,
            _look(happening),
            happening.kind in ANSWERS,
            happening.kind == "status",
            time,
            link(happening),
            ", ".join(filter(None, (happening.detail, happening.at.isoformat()))),
        )


def _look(happening: Happening) -> str:
    if happening.failed:
        return "failed"
    return "quiet" if happening.kind in ("deed", "outcome", "attempt-status", "agenda-event") else "ok"


def _due(due: Iterable[Due]) -> Iterator[Row]:
    for item in due:
        yield Row(
            SERVICE,
            SERVICE,
            f"{item.label} · due",
            "due",
            time=f"{item.at:%m-%d %H:%M}",
            title=item.at.isoformat(),
        )


def short_time(at: datetime, before: datetime | None) -> str:
    """The time of day; with its date if the day is another one than before."""
    is_same_day = before is None or before.date() == at.date()
    return f"{at:%H:%M:%S}" if is_same_day else f"{at:%m-%d %H:%M}"
