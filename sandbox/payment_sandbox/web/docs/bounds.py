"""The table of bounds: how much of everything that lives on is kept."""

from typing import Final, NamedTuple

from payment_sandbox.orders.webhooks import ATTEMPTS_KEPT_MAX, BODY_KEPT_BYTES
from payment_sandbox.projects.edit import SCAN_FORMS_MAX
from payment_sandbox.projects.events import EVENTS_KEPT_MAX, VALUE_LENGTH_MAX
from payment_sandbox.projects.journal import ENTRIES_MAX
from payment_sandbox.projects.records import BODY_KEPT_BYTES as JOURNAL_BODY_BYTES
from payment_sandbox.projects.records import HEADER_KEPT_MAX, PATH_KEPT_MAX
from payment_sandbox.storage.memory import DELIVERIES_DROPPED_AT_ONCE, DELIVERIES_KEPT_MAX
from payment_sandbox.web.answers.responses import ANSWERS_KEPT_MAX
from payment_sandbox.web.docs.tables import table


class Bound(NamedTuple):
    """What is kept, how much of it, and what happens beyond that."""

    what: str
    most: int
    unit: str
    beyond: str


OLDEST_DROPPED: Final = "the oldest is dropped and counted"
OLDEST_GONE: Final = "the oldest is dropped"
WEBHOOKS_MAX: Final = DELIVERIES_KEPT_MAX + DELIVERIES_DROPPED_AT_ONCE
CUT: Final = "the rest is cut off"
BOUNDS: Final = (
    Bound("Requests in the journal", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Bound("A body in the journal", JOURNAL_BODY_BYTES, "bytes", CUT),
    Bound("A path, query or order id in the journal", PATH_KEPT_MAX, "characters", CUT),
    Bound("Decisions of scenarios", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("A header in the journal", HEADER_KEPT_MAX, "characters", CUT),
    Bound("Deeds of customers and banks", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Scheduled events that happened", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Statuses that were reached", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Scheduled events that failed", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Webhooks", WEBHOOKS_MAX, "per project", "finished ones are dropped first, and counted"),
    Bound("Attempts of a webhook", ATTEMPTS_KEPT_MAX, "per webhook", "the first ten and the newest stay"),
    Bound("A receiver's answer", BODY_KEPT_BYTES, "bytes", CUT),
    Bound("Events for watchers", EVENTS_KEPT_MAX, "per project", OLDEST_GONE),
    Bound("A value in an event", VALUE_LENGTH_MAX, "characters", "it is left out"),
    Bound("Answers that are kept as bytes", ANSWERS_KEPT_MAX, "per project", OLDEST_GONE),
    Bound("Forms of bank QR pages", SCAN_FORMS_MAX, "per project", OLDEST_GONE),
)


def bounds() -> str:
    """The table as Markdown."""
    rows = [(bound.what, f"{bound.most:,} {bound.unit}", bound.beyond) for bound in BOUNDS]
    return table(("What", "At most", "Beyond that"), rows)
