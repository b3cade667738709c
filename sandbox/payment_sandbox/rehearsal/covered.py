"""How much of what can happen a suite has met, as a table for the terminal, JSON, or one HTML file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.methods import NAMES
from payment_sandbox.rehearsal.coverage import (
    METHOD,
    REFUSAL,
    RULE,
    WEBHOOK,
    WEBHOOK_WAYS,
    Met,
    possible_ends,
    refusal_rules,
)
from payment_sandbox.rehearsal.report import JSON, page, save

TESTS_SHOWN: Final = 3
Tests = Mapping[Met, Sequence[str]]
"""What was met, and by which tests."""


class Row(NamedTuple):
    """One line of the matrix: what can happen, and by which tests it was met."""

    title: str
    cells: Mapping[str, Sequence[str]]  # tests, by what can happen; empty: never met

    @property
    def met(self) -> int:
        """How many cells were met."""
        return sum(bool(tests) for tests in self.cells.values())

    @property
    def missing(self) -> list[str]:
        """What was never met."""
        return [name for name, tests in self.cells.items() if not tests]


class Covered(NamedTuple):
    """The matrix of a suite."""

    methods: list[Row]
    others: list[Row]
    is_chosen: bool  # the methods are those that the shop has enabled

    @property
    def percent(self) -> float:
        """How much of the ends of the methods was met."""
        cells = sum(len(row.cells) for row in self.methods)
        return 100 * sum(row.met for row in self.methods) / cells if cells else 0.0


def covered(met: Tests, enabled: Iterable[str]) -> Covered:
    """The matrix of the methods that the shop has enabled, or of those that the suite has used."""
    used = {one.subject for one in met if one.group == METHOD}
    chosen = set(enabled)
    methods = [_method(name, met) for name in NAMES if name in (chosen or used)]
    return Covered(methods, [row for row in _others(met) if row.cells], bool(chosen))


def _method(name: str, met: Tests) -> Row:
    return Row(name, {end: met.get(Met(METHOD, name, end), ()) for end in possible_ends(name)})


def _others(met: Tests) -> list[Row]:
    webhooks = {way: met.get(Met(WEBHOOK, way, ""), ()) for way in WEBHOOK_WAYS}
    refusals = {rule: met.get(Met(REFUSAL, rule, ""), ()) for rule in refusal_rules()}
    rules = {f"{one.subject}, {one.what}": met[one] for one in sorted(met) if one.group == RULE}
    return [Row("webhooks", webhooks), Row("refusals", refusals), Row("scenario rules", rules)]


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
