"""The content of a page: its Markdown file, with generated parts filled in."""

import re
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from payment_sandbox.fidelity import ledger
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, ATTEMPTS_STORED_MAX
from payment_sandbox.projects.changes import NAMED_MAX
from payment_sandbox.projects.edit import SCAN_FORMS_MAX
from payment_sandbox.projects.events import EVENTS_STORED_MAX, VALUE_LENGTH_MAX
from payment_sandbox.projects.journal import (
    ENTRIES_MAX,
    HEADER_VALUE_MAX,
    JOURNAL_BODY_BYTES,
    PATH_LENGTH_MAX,
)
from payment_sandbox.projects.relay import REPLACED_MAX
from payment_sandbox.storage.memory import DELIVERIES_DROPPED_AT_ONCE, DELIVERIES_KEPT_MAX
from payment_sandbox.web.answers.responses import ANSWERS_CACHED_MAX
from payment_sandbox.web.dashboard.frame import PAGES_MAX
from payment_sandbox.web.dashboard.notices import NOTICES_MAX
from payment_sandbox.web.docs import references
from payment_sandbox.web.docs.library import WRITTEN_FOR, title, written
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
    Bound("A path, query or order id in the journal", PATH_LENGTH_MAX, "characters", CUT),
    Bound("Decisions of scenarios", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("A header in the journal", HEADER_VALUE_MAX, "characters", CUT),
    Bound("Actions of customers and banks", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Scheduled events that happened", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Statuses that were reached", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Scheduled events that failed", ENTRIES_MAX, "per project", OLDEST_GONE),
    Bound("Webhooks", WEBHOOKS_MAX, "per project", "finished ones are dropped first, and counted"),
    Bound("Attempts of a webhook", ATTEMPTS_STORED_MAX, "per webhook", "the first ten and the newest stay"),
    Bound("A receiver's answer", ATTEMPT_BODY_BYTES, "bytes", CUT),
    Bound("Events for watchers", EVENTS_STORED_MAX, "per project", OLDEST_GONE),
    Bound("A value in an event", VALUE_LENGTH_MAX, "characters", "it is left out"),
    Bound("Answers that are kept as bytes", ANSWERS_CACHED_MAX, "per project", OLDEST_GONE),
    Bound("Forms of bank QR pages", SCAN_FORMS_MAX, "per project", OLDEST_GONE),
    Bound("Notices on the dashboard", NOTICES_MAX, "per project", OLDEST_GONE),
    Bound("Dashboard pages that a crowd shares", PAGES_MAX, "per project", OLDEST_GONE),
    Bound("Listeners that have left", REPLACED_MAX, "per project", OLDEST_GONE),
    Bound("Changes since a move of the clock, by name", NAMED_MAX, "per project", "older ones are counted"),
)


def bounds() -> str:
    """The table as Markdown."""
    rows = [(bound.what, f"{bound.most:,} {bound.unit}", bound.beyond) for bound in BOUNDS]
    return table(("What", "At most", "Beyond that"), rows)


def rules_table() -> str:
    """Every rule, with the number of tests that prove it, and whether they fail when it is broken."""
    shown = []
    for section, rules in groupby(ledger.rules(), key=itemgetter("section")):
        rows = (
            (
                f"`{rule['id']}`",
                rule["source"],
                rule["text"],
                len(rule["tests"]),
                "yes" if rule["killed_by"] else "",
            )
            for rule in rules
        )
        shown.append(f"### {section}\n\n" + table(("Rule", "Source", "Text", "Tests", "Tried"), rows))
    return "\n\n".join(shown)


def assumptions_table() -> str:
    """Every assumption, with its reason, and the number of its tests."""
    rows = (
        (each["id"], each["source"], each["text"], each["reason"], len(each["tests"]))
        for each in ledger.assumptions()
    )
    return table(("No.", "Source", "Assumption", "Why", "Tests"), rows)


SHELL: Final = """
```sh
API=http://127.0.0.1:8080
call() { curl -s -u sandbox-key: -H 'Content-Type: application/json' "$API$@"; }
field() { python3 -c "import json, sys; print(json.load(sys.stdin)$1)"; }
```
""".strip()
"""The shell setup that the commands on every page use."""
MADE: Final[Mapping[str, Callable[[], str]]] = {
    "shell": lambda: SHELL,
    "settings": references.settings,
    "scenario": references.scenario,
    "outcomes": references.outcomes,
    "effects": references.effects,
    "effect-classes": references.effect_classes,
    "variations": references.variations,
    "left-out": references.left_out,
    "sequences": references.webhook_sequences,
    "offers": references.offers,
    "ready-scenarios": references.ready_scenarios_table,
    "trigger-values": references.trigger_values,
    "cards": references.cards,
    "methods": references.methods,
    "refusals": references.refusals,
    "errors": references.errors,
    "bounds": bounds,
    "assumptions": assumptions_table,
    "rules": rules_table,
    "python": references.python_reference,
}
OF_APIS: Final[Mapping[str, Callable[[str], str]]] = {
    "merchant-api": references.merchant_api,
    "control-api": references.control_api,
    "pages": references.pages,
}
PLACE: Final = re.compile(r"^\{\{ ([a-z-]+) \}\}$", re.MULTILINE)


class DocPage(NamedTuple):
    """One page as Markdown, with its generated parts filled in."""

    name: str
    title: str
    text: str


def page(name: str, described: Callable[[], str], public_url: str = WRITTEN_FOR) -> DocPage:
    """A page whose commands work as they are against the server at ``public_url``.

    ``described`` makes the OpenAPI description of the APIs, for the pages that need it.
    """

    def made(place: re.Match[str]) -> str:
        of_apis = OF_APIS.get(place[1])
        return of_apis(described()) if of_apis is not None else MADE[place[1]]()

    text = PLACE.sub(made, written(name))
    return DocPage(name, title(name), text.replace(WRITTEN_FOR, public_url))
