"""Choosing what shall happen in a project."""

from typing import Any

from payment_sandbox.methods import NAMES
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import SettingsForm, check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.scenarios.documents import Document
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.schema import scenario_schema


def choose_scenario(project: Project, document: Document, catalogue: Catalogue) -> None:
    """Activate a scenario that is known by its name, or a whole document (CTL-19).

    Attempts under way keep the outcome they began with (SCN-05).

    Raises:
        Invalid: lists all that is wrong; the active scenario stays (SCN-01).
    """
    data = document.data
    with document.placing():
        if isinstance(data, dict) and data.keys() == {"name"}:
            scenario = catalogue.find(data["name"])
        else:
            scenario = load_scenario(data, project.settings.method_names, check_scenario_settings)
        project.activate(scenario)


def file_schema() -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors."""
    return scenario_schema(NAMES, SettingsForm)
