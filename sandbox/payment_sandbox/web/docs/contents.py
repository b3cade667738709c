"""What stands in a page: what was written, and what is made from the code."""

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from payment_sandbox.web.docs import ledger, references, routes
from payment_sandbox.web.docs.library import title, written

WRITTEN_FOR: Final = "http://127.0.0.1:8080"
SHELL: Final = """
```sh
API=http://127.0.0.1:8080
call() { curl -s -u sandbox-key: -H 'Content-Type: application/json' "$API$@"; }
field() { python3 -c "import json, sys; print(json.load(sys.stdin)$1)"; }
```
""".strip()
"""How every page's commands begin."""
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
    "assumptions": ledger.assumptions,
    "rules": ledger.rules,
    "merchant-api": routes.merchant_api,
    "control-api": routes.control_api,
    "pages": routes.pages,
}
PLACE: Final = re.compile(r"^\{\{ ([a-z-]+) \}\}$", re.MULTILINE)


class Page(NamedTuple):
    """One page as Markdown, with everything in it that is made from the code."""

    name: str
    title: str
    text: str


def page(name: str, public_url: str = WRITTEN_FOR) -> Page:
    """A page for readers of the server at ``public_url``: its commands work there as they stand."""
    text = PLACE.sub(lambda place: MADE[place[1]](), written(name))
    return Page(name, title(name), text.replace(WRITTEN_FOR, public_url))
