"""Choose a project's scenario, and build the schema of scenario files."""

from collections.abc import Sequence
from typing import Any

from payment_sandbox.forms import Form, schemas
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.scenarios.catalogue import Catalogue, is_name
from payment_sandbox.scenarios.documents import Document
from payment_sandbox.scenarios.scenario_forms import ScenarioForm


def scenario_schema(methods: Sequence[str], settings: type[Form]) -> dict[str, Any]:
    """Build the schema; editors suggest ``methods``, and ``settings`` is the form of the project settings."""
    schema = schemas.json_schema(ScenarioForm, {"settings": settings})
    name = schema["$defs"]["When"]["properties"]["payment_method"]
    # Editors may suggest these names, but must accept others, because aliases are allowed.
    name["items"] = {"anyOf": [{"enum": list(methods)}, {"type": "string"}]}
    return schema


def choose_scenario(project: Project, document: Document, catalogue: Catalogue) -> None:
    """Activate a scenario by name, or from a whole document (CTL-19).

    Attempts in progress keep their outcome (SCN-05).

    Raises:
        Invalid: lists all violations; the scenario stays unchanged (SCN-01).
    """
    data = document.data
    with document.add_positions():
        scenario = catalogue.choose(data, project.settings.method_names)
        if not is_name(data):
            scenario = scenario._replace(is_inline=not document.has_positions)
        project.activate(scenario)


def file_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files, for editors."""
    return scenario_schema(METHOD_NAMES, SettingsForm)
