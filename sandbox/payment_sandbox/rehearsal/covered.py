"""How much of what can happen a suite has met, as a table for the terminal, JSON, or one HTML file."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from payment_sandbox.operations.coverage import Covered, Row
from payment_sandbox.rehearsal.report import JSON, page, save

TESTS_SHOWN: Final = 3


def lines(found: Covered) -> list[str]:
    """The matrix for a terminal: a line for each row, with what is missing."""
    rows = [*found.methods, *found.others]
    width = max((len(row.title) for row in rows), default=0)
    shown = [f"  {row.title:{width}}  {_share(row):>14}{_missing(row)}" for row in rows]
    if not found.is_chosen:
        shown.append("  only methods that the suite has used; set payment_methods to see all that you offer")
    return [*shown, f"  methods, in all: {found.percent:.0f} %"]


def _share(row: Row) -> str:
    count = len(row.cells)
    return f"{row.met} of {count}, {100 * row.met / count:3.0f} %"


def _missing(row: Row) -> str:
    return f"  never: {', '.join(row.missing)}" if row.missing else ""


def write(path: Path, found: Covered) -> None:
    """Write the matrix into an .html or a .json file."""
    save(path, _json(found) if path.suffix == JSON else html(found))


def _json(found: Covered) -> str:
    rows: list[dict[str, Any]] = [
        {"row": row.title, "cells": {name: list(tests) for name, tests in row.cells.items()}}
        for row in (*found.methods, *found.others)
    ]
    return json.dumps({"percent": round(found.percent, 1), "rows": rows}, indent=1)


def html(found: Covered) -> str:
    """The matrix as a page without scripts: each cell names the tests that met it."""
    heading = f"Payment coverage: {found.percent:.0f} %"
    return page("Payment coverage", heading, map(_section, (*found.methods, *found.others)))


def _section(row: Row) -> str:
    return f"<h2>{escape(row.title)}: {_share(row)}</h2><ul>{_items(row)}</ul>"


def _items(row: Row) -> str:
    return "".join(f"<li>{_cell(name, tests)}</li>" for name, tests in row.cells.items())


def _cell(name: str, tests: Sequence[str]) -> str:
    if not tests:
        return f"<strong>{escape(name)}: never</strong>"
    more = f" and {len(tests) - TESTS_SHOWN} more" if len(tests) > TESTS_SHOWN else ""
    return f"{escape(name)}: <span class='test'>{escape(', '.join(tests[:TESTS_SHOWN]))}{more}</span>"
