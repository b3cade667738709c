"""The generated parts of the documentation: blocks of pages, examples of calls, the schema of scenarios."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final, NamedTuple

import payment_sandbox.web
from payment_sandbox.delivery.receivers import REPLACED_MAX
from payment_sandbox.fidelity import ledger
from payment_sandbox.forms.fields import Label
from payment_sandbox.operations.choose_scenario import file_schema
from payment_sandbox.orders.lines import LINES_MAX
from payment_sandbox.orders.refusals import VIOLATIONS_MAX
from payment_sandbox.orders.webhooks import ATTEMPT_BODY_BYTES, ATTEMPTS_STORED_MAX
from payment_sandbox.projects.caller import SAVED_ANSWERS_MAX
from payment_sandbox.projects.edit import SCAN_FORMS_MAX
from payment_sandbox.projects.epoch import UNMATCHED_MAX
from payment_sandbox.projects.events import EVENTS_STORED_MAX, VALUE_LENGTH_MAX
from payment_sandbox.projects.journal import (
    ENTRIES_MAX,
    HEADER_VALUE_MAX,
    JOURNAL_BODY_BYTES,
    PATH_LENGTH_MAX,
)
from payment_sandbox.scenarios.catalogue import ready_folder
from payment_sandbox.scenarios.documents import ALIASES_MAX, DEPTH_MAX, NODES_MAX, TEXT_LENGTH_MAX
from payment_sandbox.scenarios.scenario_forms import RULES_MAX
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.front import HEAD_BYTES_MAX
from payment_sandbox.storage.memory import DELIVERIES_DROPPED_AT_ONCE, DELIVERIES_MAX
from payment_sandbox.ui.dashboard.notices import NOTICES_MAX
from payment_sandbox.ui.docs.library import PAGE_NAMES
from payment_sandbox.web.answers.responses import RESPONSES_CACHED_MAX
from payment_sandbox.web.bodies import BODY_BYTES_MAX, NESTING_MAX, STATE_BYTES_MAX, VALUES_MAX
from payment_sandbox.web.snapshot_bodies import STATE_VALUES_MAX
from tests.documentation import references
from tests.documentation.clients import generated_clients
from tests.documentation.commands import commands_reference
from tests.documentation.examples import recorded_examples
from tests.documentation.frameworks import frameworks_table
from tests.documentation.tables import table
from tests.support.documentation import ROOT

WEB: Final = Path(payment_sandbox.web.__file__).parent
PAGES: Final = WEB.parent / "ui" / "docs" / "pages"
EXAMPLES: Final = WEB / "examples.json"
SCHEMA: Final = ready_folder() / "scenario.schema.json"


class Limit(NamedTuple):
    """A limit on stored data: what it limits, its value and unit, and the effect of exceeding it."""

    subject: str
    maximum: int
    unit: str
    effect: str


RETRY: Final = "503 with `Retry-After`"
OLDEST_DROPPED_AND_COUNTED: Final = "the oldest entry is dropped and counted"
OLDEST_DROPPED: Final = "the oldest entry is dropped"
WEBHOOKS_MAX: Final = DELIVERIES_MAX + DELIVERIES_DROPPED_AT_ONCE
TRUNCATED: Final = "the rest is cut off"
LIMITS: Final = (
    Limit("Requests in the journal", ENTRIES_MAX, "per project", OLDEST_DROPPED_AND_COUNTED),
    Limit("A body in the journal", JOURNAL_BODY_BYTES, "bytes", TRUNCATED),
    Limit("A path, query or order ID in the journal", PATH_LENGTH_MAX, "characters", TRUNCATED),
    Limit("Scenario decisions", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Limit("A header in the journal", HEADER_VALUE_MAX, "characters", TRUNCATED),
    Limit("Actions of customers, banks and other actors", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Limit("Past scheduled events", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Limit("Status changes", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Limit("Failed scheduled events", ENTRIES_MAX, "per project", OLDEST_DROPPED),
    Limit("Webhooks", WEBHOOKS_MAX, "per project", "finished webhooks are dropped first, and counted"),
    Limit(
        "Delivery attempts of a webhook",
        ATTEMPTS_STORED_MAX,
        "per webhook",
        "the first ten and the newest remain",
    ),
    Limit("A receiver's response", ATTEMPT_BODY_BYTES, "bytes", TRUNCATED),
    Limit("Events for watchers", EVENTS_STORED_MAX, "per project", OLDEST_DROPPED),
    Limit("A value in an event", VALUE_LENGTH_MAX, "characters", "the value is omitted"),
    Limit("Cached responses", RESPONSES_CACHED_MAX, "per project", OLDEST_DROPPED),
    Limit("Answers to requests with an Idempotency-Key", SAVED_ANSWERS_MAX, "per project", OLDEST_DROPPED),
    Limit("Forms of bank QR pages", SCAN_FORMS_MAX, "per project", OLDEST_DROPPED),
    Limit("Removed faults and rules that never matched", UNMATCHED_MAX, "per project", OLDEST_DROPPED),
    Limit("Notices on the dashboard", NOTICES_MAX, "per project", OLDEST_DROPPED),
    Limit("Disconnected listeners", REPLACED_MAX, "per project", OLDEST_DROPPED),
)


def limits_table() -> str:
    """Return the table of limits."""
    rows = [(bound.subject, f"{bound.maximum:,} {bound.unit}", bound.effect) for bound in LIMITS]
    return table(("Data", "Limit", "When exceeded"), rows)


def request_limits_table() -> str:
    """Return the table of limits of a request."""
    limits, yaml = Limits(), f"{NODES_MAX:,} nodes, {DEPTH_MAX} levels, {ALIASES_MAX:,} aliases"
    rows = (
        ("Request line with headers", f"{HEAD_BYTES_MAX >> 10} KiB", "431"),
        ("Body", f"{BODY_BYTES_MAX >> 20} MiB; a snapshot {STATE_BYTES_MAX >> 20} MiB", "413"),
        ("Values in a JSON body", f"{VALUES_MAX:,}", "400"),
        ("Values in a snapshot", f"{STATE_VALUES_MAX:,}", "413"),
        ("Order lines of an order, a capture, a void or a refund", f"{LINES_MAX:,}", "400"),
        ("Rules, faults and webhook rules in a scenario", f"{RULES_MAX:,} each", "400"),
        ("Names and descriptions of projects and scenarios", f"{Label.LENGTH_MAX:,} characters", "400"),
        ("JSON nesting", f"{NESTING_MAX} levels", "400"),
        ("Scenario in YAML", f"{TEXT_LENGTH_MAX >> 10} Ki characters, {yaml}", "400"),
        ("Violations in an answer", str(VIOLATIONS_MAX), "others are not reported"),
        ("Calls on threads, which may wait", f"{limits.threads:,}", RETRY),
        ("Watchers", f"{limits.streams:,}", RETRY),
    )
    return table(("Subject", "Limit", "Beyond that"), rows)


def rules_table() -> str:
    """Return a table of rules for each section of the specification."""
    tables = []
    for section, rules in groupby(ledger.rules(), key=itemgetter("section")):
        rows = ((f"`{rule['id']}`", rule["source"], rule["text"]) for rule in rules)
        tables.append(f"### {section}\n\n" + table(("Rule", "Source", "Text"), rows))
    return "\n\n".join(tables)


def assumptions_table() -> str:
    """Return the table of assumptions, with their reasons."""
    rows = ((each["id"], each["source"], each["text"], each["reason"]) for each in ledger.assumptions())
    return table(("No.", "Source", "Assumption", "Why"), rows)


def meetings_table() -> str:
    """Return the results of the last ``make compat``."""
    text = (ROOT / "tests" / "compat" / "results.tsv").read_text(encoding="utf-8")
    return table(("Kind", "Tool", "Version", "Result"), csv.reader(text.splitlines(), delimiter="\t"))


SHELL_SETUP: Final = """
```sh
API=http://127.0.0.1:8080
call() { curl -s -u sandbox-key: -H 'Content-Type: application/json' "$API$@"; }
field() { python3 -c "import json, sys; print(json.load(sys.stdin)$1)"; }
```
""".strip()
"""The shell setup for the commands on all pages."""
PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "shell": lambda: SHELL_SETUP,
    "settings": references.settings_table,
    "scenario": references.scenario_tables,
    "outcomes": references.outcomes_table,
    "effects": references.effects_table,
    "http-clients": references.http_clients_table,
    "frameworks": frameworks_table,
    "meetings": meetings_table,
    "effect-classes": references.effect_classes_table,
    "variations": references.variations_table,
    "ready-scenarios": references.ready_scenarios_table,
    "trigger-values": references.trigger_values_table,
    "cards": references.cards_table,
    "methods": references.methods_table,
    "refusals": references.refusals_table,
    "errors": references.errors_table,
    "bounds": limits_table,
    "request-limits": request_limits_table,
    "assumptions": assumptions_table,
    "rules": rules_table,
    "python": references.python_reference,
    "commands": commands_reference,
    "merchant-api": lambda: references.describe_calls("merchant API"),
    "control-api": lambda: references.describe_calls("control ", "server", "documentation"),
    "pages": lambda: references.describe_calls("pages"),
}
BLOCK: Final = re.compile(
    r"^(?:\{\{ (?P<new>[a-z-]+) \}\}|<!-- generated: (?P<name>[a-z-]+) -->\n.*?\n<!-- end -->)$",
    re.MULTILINE | re.DOTALL,
)
"""A generated block of a page; ``{{ name }}`` stands for one that ``make docs`` has not written yet."""


def fill_in(text: str) -> str:
    """Return the text of a page with up-to-date generated blocks."""

    def block(match: re.Match[str]) -> str:
        name = match["new"] or match["name"]
        return f"<!-- generated: {name} -->\n\n{PARTS[name]()}\n\n<!-- end -->"

    return BLOCK.sub(block, text)


def generated_files() -> Iterator[tuple[Path, str]]:
    """Yield every generated file and every page, with its up-to-date text."""
    yield from generated_clients()
    yield EXAMPLES, recorded_examples()
    yield SCHEMA, json.dumps(file_schema(), indent=2) + "\n"
    for name in PAGE_NAMES:
        file = PAGES / f"{name}.md"
        yield file, fill_in(file.read_text(encoding="utf-8"))
