"""The list of projects, which shows each project without its epoch and its records."""

from typing import NamedTuple

from payment_sandbox.projects.clock import Clock
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import Settings


class ProjectEntry(NamedTuple):
    """A project in the list; with a ``problem``, the project cannot be read and shows its initial state."""

    project_id: str
    merchant_id: str
    settings: Settings
    clock: Clock
    scenario: str
    orders_created: int = 0
    problem: str | None = None


def list_project(project: Project) -> ProjectEntry:
    """Return the entry of a project in memory."""
    epoch = project.epoch
    clock = epoch.state.clock.set(project.now())
    return ProjectEntry(
        project.project_id,
        project.merchant_id,
        epoch.state.settings,
        clock,
        epoch.state.scenario.name,
        epoch.orders_created,
    )
