"""Sequence diagrams of timeline entries, as SVG."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from html import escape
from typing import Final, NamedTuple

from payment_sandbox.judge.history import FOLDED_KIND, SERVICE, SHOP, TimelineEntry
from payment_sandbox.judge.in_words import MISSING_KIND
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.actions import BANK, CUSTOMER, SCREENING

ROWS_MAX: Final = 200
LANES: Final = {
    CUSTOMER: "Customer",
    SHOP: "Your shop",
    SERVICE: "Service",
    BANK: "Bank",
    SCREENING: "Screening",
}
PERMANENT_LANES: Final = (CUSTOMER, SHOP, SERVICE)
STATUS_LOOKS: Final = {"completed": "ok", "accepted": "ok", "processing": "ok", "error": "failed"}
"""The styles of statuses; only paid statuses, and those still on the way to payment, look like success."""
RESPONSE_KINDS: Final = ("response", "webhook-response", "outcome")
LOST: Final = "lost"


class PictureRow(NamedTuple):
    """An arrow, or a note on a lane if sender and receiver are the same.

    ``look`` is ``ok``, ``failed``, ``lost``, ``quiet``, ``due`` or ``missing``; ``time`` is the text of the
    time column, only where it changes; ``link`` is the target of a click.
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


class SequenceDiagram(NamedTuple):
    """A sequence diagram; ``omitted`` counts the earlier rows beyond the limit."""

    lanes: tuple[str, ...]
    rows: tuple[PictureRow, ...]
    omitted: int = 0
    full_url: str | None = None  # the link to all rows


class ScheduledEvent(NamedTuple):
    """A scheduled event."""

    at: datetime
    label: str


Link = Callable[[TimelineEntry], str | None]
"""Returns the link of a timeline entry."""


def draw_sequence(
    timeline_entries: Iterable[TimelineEntry],
    due: Iterable[ScheduledEvent] = (),
    link: Link = lambda timeline_entry: None,
    *,
    rows_max: int = ROWS_MAX,
    full_url: str | None = None,
) -> SequenceDiagram:
    """Draw timeline entries and scheduled events; ``full_url`` is the URL of a diagram with more rows."""
    timeline_entries = list(timeline_entries)
    rows = list(_rows(timeline_entries, link))
    last_at = timeline_entries[-1].at if timeline_entries else None
    shown = [*rows[-rows_max:], *_due_rows(due, last_at)]
    parties = {party for row in shown for party in (row.sender, row.receiver)}
    lanes = tuple(lane for lane in LANES if lane in PERMANENT_LANES or lane in parties)
    return SequenceDiagram(lanes, tuple(shown), max(0, len(rows) - rows_max), full_url)


def _rows(timeline_entries: Iterable[TimelineEntry], link: Link) -> Iterator[PictureRow]:
    shown_at: datetime | None = None
    for timeline_entry in timeline_entries:
        at = timeline_entry.at.replace(microsecond=0)
        time = "" if at == shown_at else short_time(at, shown_at)
        shown_at = at
        times = f"{timeline_entry.at.isoformat()}, real time {timeline_entry.real_at.isoformat()}"
        yield PictureRow(
            timeline_entry.sender,
            timeline_entry.receiver,
            _label_with_time(timeline_entry),
            _look(timeline_entry),
            timeline_entry.kind in RESPONSE_KINDS,
            timeline_entry.kind == "status",
            time,
            link(timeline_entry),
            ", ".join(filter(None, (timeline_entry.detail, times))),
        )


def _label_with_time(timeline_entry: TimelineEntry) -> str:
    took = timeline_entry.duration_ms
    return timeline_entry.label if took is None else f"{timeline_entry.label} · {took} ms"


def _look(timeline_entry: TimelineEntry) -> str:
    if timeline_entry.kind == MISSING_KIND:
        return MISSING_KIND
    if timeline_entry.lost:
        return LOST
    if timeline_entry.failed:
        return "failed"
    if timeline_entry.kind == "status":
        return STATUS_LOOKS.get(str(timeline_entry.status), "quiet")
    return (
        "quiet"
        if timeline_entry.kind in (FOLDED_KIND, "action", "outcome", "attempt-status", "agenda-event")
        else "ok"
    )


def _due_rows(due: Iterable[ScheduledEvent], last_at: datetime | None) -> Iterator[PictureRow]:
    """Yield the scheduled events, with their days if they differ from the last entry's day."""
    for item in due:
        yield PictureRow(
            SERVICE,
            SERVICE,
            f"{item.label} · due",
            "due",
            time=short_time(item.at, last_at or item.at),
            title=item.at.isoformat(),
        )


def short_time(at: datetime, before: datetime | None) -> str:
    """Format the time of day, with the date if the day has changed."""
    is_same_day = before is None or before.date() == at.date()
    return f"{at:%H:%M:%S}" if is_same_day else f"{at:%m-%d %H:%M}"


WIDTH: Final = 720  # pixels: the width of a file, and the minimum width on a page
FIRST_LANE: Final = 16.5  # per cent; the time column precedes it
LAST_LANE: Final = 91.5  # per cent
TOP_MARGIN: Final = 44
ROW_HEIGHT: Final = 30
ARROW: Final = 5
LABEL_OVERHANG: Final = 80  # pixels by which a label may exceed its arrow
CHARACTER_WIDTH: Final = 6.2
LABEL_LENGTH_MAX: Final = 64
FORBIDDEN_IN_XML: Final = Pattern("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLOURS: Final = {
    "ok": "#0b5d57",
    "failed": "#a3231f",
    "quiet": "#4d5c5a",
    "due": "#8a6a1f",
    LOST: "#8a6a1f",
    MISSING_KIND: "#a3231f",
}
FONT: Final = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def svg(picture: SequenceDiagram, title: str) -> str:
    """Render a diagram as SVG."""
    height = TOP_MARGIN + ROW_HEIGHT * (len(picture.rows) + bool(picture.omitted)) + 14
    role = "group" if picture.full_url or any(row.link for row in picture.rows) else "img"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="sequence" width="100%" '
        f'height="{height}" role="{role}" aria-label="{escape(title)}" font-family="{FONT}" font-size="12">'
    )
    return "\n".join([head, *_lanes(picture, height), *_draw_rows(picture), "</svg>"])


def _positions(picture: SequenceDiagram) -> dict[str, float]:
    """Return the positions of the lanes, in per cent of the width."""
    distance = (LAST_LANE - FIRST_LANE) / (len(picture.lanes) - 1)
    return {lane: round(FIRST_LANE + distance * number, 2) for number, lane in enumerate(picture.lanes)}


def _lanes(picture: SequenceDiagram, height: int) -> Iterator[str]:
    for lane, x in _positions(picture).items():
        yield (
            f'<text x="{x:g}%" y="18" text-anchor="middle" font-weight="650" font-size="13" class="lane">'
            f"{LANES[lane]}</text>"
            f'<line x1="{x:g}%" y1="28" x2="{x:g}%" y2="{height - 8}" stroke="#b9c4c1" class="lane-line"/>'
        )


def _draw_rows(picture: SequenceDiagram) -> Iterator[str]:
    positions, y = _positions(picture), TOP_MARGIN + 10
    if picture.omitted:
        text = _text("50%", y, f"… {picture.omitted} earlier entries", COLOURS["quiet"], "quiet")
        yield f'<a href="{escape(picture.full_url)}" data-whole="">{text}</a>' if picture.full_url else text
        y += ROW_HEIGHT
    for row in picture.rows:
        parts = [f'<g class="row {row.look}">']
        if row.title:
            parts.append(f"<title>{_escape_xml(row.title)}</title>")
        if row.time:
            parts.append(_text("4", y + 4, row.time, COLOURS["quiet"], "time", anchor="start"))
        parts.append(
            _note(row, positions[row.sender], y) if row.sender == row.receiver else _arrow(row, positions, y)
        )
        if row.link:
            parts.append(_click_target(row, positions, y))
        drawn = "".join([*parts, "</g>"])
        yield f'<a href="{escape(row.link)}">{drawn}</a>' if row.link else drawn
        y += ROW_HEIGHT


def _click_target(row: PictureRow, positions: dict[str, float], y: float) -> str:
    """Make the full height of the row clickable, not only the thin line."""
    begin, end = sorted((positions[row.sender], positions[row.receiver]))
    top, height = y - ROW_HEIGHT / 2 - 3, ROW_HEIGHT - 2
    return f'<rect x="{begin:g}%" y="{top:g}" width="{end - begin:g}%" height="{height}" fill-opacity="0"/>'


def _pixels(share: float) -> float:
    return share * WIDTH / 100


def _arrow(row: PictureRow, positions: dict[str, float], y: float) -> str:
    begin, end = positions[row.sender], positions[row.receiver]
    back = -ARROW if end > begin else ARROW
    colour, middle = COLOURS[row.look], (begin + end) / 2
    dash = ' stroke-dasharray="4 3"' if row.is_answer else ""
    label = _truncate(row.label, _pixels(abs(end - begin)) + LABEL_OVERHANG)
    if row.look == LOST:  # the arrow ends halfway, with a cross
        end, path = (
            middle,
            f'd="M -{ARROW} -{ARROW} L {ARROW} {ARROW} M -{ARROW} {ARROW} L {ARROW} -{ARROW}"',
        )
        head = f'<path class="cross" {path} stroke="{colour}" stroke-width="2"/>'
    else:
        head = f'<path d="M 0 0 L {back} -{ARROW} L {back} {ARROW} Z" fill="{colour}"/>'
    return (
        f'<line x1="{begin:g}%" y1="{y}" x2="{end:g}%" y2="{y}" stroke="{colour}" stroke-width="1.5"{dash}/>'
        f'<svg x="{end:g}%" y="{y}" overflow="visible">{head}</svg>'
        + _text(f"{middle:g}%", y - (7 if row.look == LOST else 5), label, colour, "label")
    )


def _note(row: PictureRow, x: float, y: float) -> str:
    """Render a status as a filled pill, and other notes as outlined pills."""
    colour = COLOURS[row.look]
    label = _truncate(row.label, 2 * (WIDTH - _pixels(x)))
    width = max(64.0, len(label) * CHARACTER_WIDTH + 20)
    x = round(min(x, 100 - 100 * (width / 2 + 2) / WIDTH), 2)
    if row.is_status:
        look, ink = f'fill="{colour}"', "#ffffff"
    else:
        dash = ' stroke-dasharray="3 3"' if row.look in ("due", MISSING_KIND) else ""
        look, ink = f'fill="#ffffff" stroke="{colour}"{dash} class="outlined"', colour
    text_class = "on-pill" if row.is_status else "label"
    pill = f'<rect x="{-width / 2:g}" y="-10" width="{width:g}" height="20" rx="10" {look}/>'
    drawn = pill + _text("0", 4, label, ink, text_class)
    return f'<svg x="{x:g}%" y="{y}" overflow="visible">{drawn}</svg>'


def _text(x: str, y: float, text: str, colour: str, name: str, anchor: str = "middle") -> str:
    place = f'x="{x}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text {place} fill="{colour}" class="{name}">{_escape_xml(text)}</text>'


def _escape_xml(text: str) -> str:
    """Remove characters that XML does not allow, such as terminal escapes."""
    return escape(FORBIDDEN_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def _truncate(label: str, width: float) -> str:
    length = min(LABEL_LENGTH_MAX, int(width / CHARACTER_WIDTH))
    return label if len(label) <= length else f"{label[: length - 1]}…"
