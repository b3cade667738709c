"""An advance over many expiries, against a bare heap with the same callbacks."""

import heapq
from datetime import timedelta

from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.due import handler_of
from payment_sandbox.projects.project import Project
from tests.bench import report, seconds
from tests.bench.bodies import ORDER, fresh_project

EVENTS = 100_000


def filled(events: int) -> Project:
    """A project with as many orders, each to expire at a time of its own."""
    project, _ = fresh_project()
    for number in range(events):
        transaction = {"payment_method": "credit-card", "expiration_period": f"PT{number + 1}S"}
        create_order(project, {**ORDER, "client": {}, "transactions": [transaction]})
    return project


def bare(project: Project) -> None:
    """The same callbacks, from a heap and nothing else."""
    heap = [(due.at, due.sequence, due.item) for due in project.epoch.timeline]
    heapq.heapify(heap)
    while heap:
        at, _, command = heapq.heappop(heap)
        with project.edit(now=at) as edit:
            handler_of(command).run(edit, command)


def advanced(project: Project) -> float:
    """Seconds for one advance over everything."""
    until = project.now() + timedelta(days=3)
    return seconds(lambda: advance_clock(project, {"to": until}, AdvanceLimits(10 * EVENTS, 600)))


def main() -> None:
    """Ratio to the bare loop, and linearity."""
    half = advanced(filled(EVENTS // 2))
    whole = advanced(filled(EVENTS))
    reference_project = filled(EVENTS)
    reference = seconds(lambda: bare(reference_project))
    report(
        f"{EVENTS} expiries in one advance / bare heap with the same callbacks", whole / reference, "<= 1.5"
    )
    report(f"time for {EVENTS} / twice the time for {EVENTS // 2}", whole / (2 * half), "about 1")
