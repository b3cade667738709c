"""How much of what can happen was met: a row per method, and one each for webhooks, refusals and rules."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from payment_sandbox.methods import NAMES
from payment_sandbox.operations.coverage.met import (
    METHOD,
    REFUSAL,
    RULE,
    WEBHOOK,
    WEBHOOK_WAYS,
    Met,
    enabled_methods,
    met_by,
    possible_ends,
    refusal_rules,
)
from payment_sandbox.projects.project import Project

Places = Mapping[Met, Sequence[str]]
"""What was met, and where: in which tests, or in which orders."""


class Row(NamedTuple):
    """One line of the matrix: what can happen, and where it was met."""

    group: str
    title: str
    cells: Mapping[str, Sequence[str]]  # where, by what can happen; empty: never met

    @property
    def met(self) -> int:
        """How many cells were met."""
        return sum(bool(places) for places in self.cells.values())

    @property
    def missing(self) -> list[str]:
        """What was never met."""
        return [name for name, places in self.cells.items() if not places]


class Covered(NamedTuple):
    """The matrix of a suite, or of a project."""

    methods: list[Row]
    others: list[Row]
    is_chosen: bool  # the methods are those that the shop has enabled

    @property
    def percent(self) -> float:
        """How much of the ends of the methods was met."""
        cells = sum(len(row.cells) for row in self.methods)
        return 100 * sum(row.met for row in self.methods) / cells if cells else 0.0


def covered(met: Places, enabled: Iterable[str]) -> Covered:
    """The matrix of the methods that the shop has enabled, or of those that were used."""
    used = {one.subject for one in met if one.group == METHOD}
    chosen = set(enabled)
    methods = [_method(name, met) for name in NAMES if name in (chosen or used)]
    return Covered(methods, [row for row in _others(met) if row.cells], bool(chosen))


def _method(name: str, met: Places) -> Row:
    return Row(METHOD, name, {end: met.get(Met(METHOD, name, end), ()) for end in possible_ends(name)})


def _others(met: Places) -> list[Row]:
    webhooks = {way: met.get(Met(WEBHOOK, way, ""), ()) for way in WEBHOOK_WAYS}
    refusals = {rule: met.get(Met(REFUSAL, rule, ""), ()) for rule in refusal_rules()}
    rules = {f"{one.subject}, {one.what}": met[one] for one in sorted(met) if one.group == RULE}
    return [
        Row(WEBHOOK, "webhooks", webhooks),
        Row(REFUSAL, "refusals", refusals),
        Row(RULE, "scenario rules", rules),
    ]


def met_of(group: str, title: str, what: str) -> Met:
    """What a cell of a row stands for."""
    if group == METHOD:
        return Met(METHOD, title, what)
    scenario, _, rule = what.partition(", ")
    return Met(group, scenario, rule)


def coverage(project: Project) -> Covered:
    """The matrix of a project."""
    return covered(met_by(project), enabled_methods(project))
