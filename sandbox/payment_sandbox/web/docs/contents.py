"""The content of a page: its Markdown file, with generated parts filled in."""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from payment_sandbox.web.docs import ledger, references, routes
from payment_sandbox.web.docs.bounds import bounds
from payment_sandbox.web.docs.library import title, written
from payment_sandbox.web.docs.python_reference import python_reference

WRITTEN_FOR: Final = "http://127.0.0.1:8080"
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
    "ready-scenarios": references.ready_scenarios,
    "trigger-values": references.trigger_values,
    "cards": references.cards,
    "methods": references.methods,
    "refusals": references.refusals,
    "errors": references.errors,
    "bounds": bounds,
    "assumptions": ledger.assumptions,
    "rules": ledger.rules,
    "merchant-api": routes.merchant_api,
    "control-api": routes.control_api,
    "pages": routes.pages,
    "python": python_reference,
}
PLACE: Final = re.compile(r"^\{\{ ([a-z-]+) \}\}$", re.MULTILINE)


class Page(NamedTuple):
    """One page as Markdown, with its generated parts filled in."""

    name: str
    title: str
    text: str


def page(name: str, public_url: str = WRITTEN_FOR) -> Page:
    """A page whose commands work as they are against the server at ``public_url``."""
    text = PLACE.sub(lambda place: MADE[place[1]](), written(name))
    return Page(name, title(name), text.replace(WRITTEN_FOR, public_url))
