"""Benchmark of an advance over many expiries, against a bare heap with the same callbacks."""

import heapq
from datetime import timedelta

from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.due_commands import handler_of
from payment_sandbox.operations.move_clock import advance_clock
from payment_sandbox.projects.project import Project
from tests.bench import report, seconds
from tests.bench.bodies import ORDER, fresh_project

EVENTS = 100_000


def project_with_orders(events: int) -> Project:
    """Return a project with this many orders, each with another time of expiry."""
    project, _ = fresh_project()
    for number in range(events):
        transaction = {"payment_method": "credit-card", "expiration_period": f"PT{number + 1}S"}
        create_order(project, {**ORDER, "client": {}, "transactions": [transaction]})
    return project


def run_bare_heap(project: Project) -> None:
    """Run the same callbacks from a bare heap."""
    heap = [(due.at, due.sequence, due.item) for due in project.epoch.timeline]
    heapq.heapify(heap)
    while heap:
        at, _, command = heapq.heappop(heap)
        with project.edit(now=at) as edit:
            handler_of(command).run(edit, command)


def advance_seconds(project: Project) -> float:
    """Return the seconds of one advance over all expiries."""
    until = project.now() + timedelta(days=3)
    return seconds(lambda: advance_clock(project, {"to": until}, AdvanceLimits(10 * EVENTS, 600)))


def main() -> None:
    """Report the ratio to the bare heap, and linearity."""
    half = advance_seconds(project_with_orders(EVENTS // 2))
    whole = advance_seconds(project_with_orders(EVENTS))
    reference_project = project_with_orders(EVENTS)
    reference = seconds(lambda: run_bare_heap(reference_project))
    report(
        f"{EVENTS} expiries in one advance / bare heap with the same callbacks", whole / reference, "<= 1.5"
    )
    report(f"time for {EVENTS} / twice the time for {EVENTS // 2}", whole / (2 * half), "about 1")
