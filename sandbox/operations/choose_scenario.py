"""Choosing what shall happen in a project."""

from typing import Any

from sandbox.orders.refusals import Invalid, Violation
from sandbox.projects.project import Project
from sandbox.scenarios.default import default_scenario
from sandbox.scenarios.loader import load_scenario


def choose_scenario(project: Project, document: Any) -> None:
    """Activate a scenario that is known by its name, or a whole document (CTL-19).

    Attempts under way keep the outcome they began with (SCN-05).

    Raises:
        Invalid: lists all that is wrong; the active scenario stays (SCN-01).
    """
    if isinstance(document, dict) and document.keys() == {"name"}:
        known = {"default": default_scenario()}
        scenario = known.get(document["name"])
        if scenario is None:
            raise Invalid([Violation("name", "is no known scenario; send its rules along", list(known))])
    else:
        scenario = load_scenario(document, project.settings.method_names)
    project.activate(scenario)
