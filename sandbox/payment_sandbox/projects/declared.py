"""Projects with fixed keys, declared in YAML files and created when the server starts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import Form, Items, Part, Text, load, unknown_keys
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import RUNNING, ClockStart
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.scenarios.catalogue import Catalogue, read_text
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.model import Scenario

BESIDES: Final = ("api_key", "scenario")  # keys that are not settings for creation


class ProjectForm(SettingsForm):
    """One project: its key, its settings, and its initial clock and scenario."""

    api_key = Text(
        required=True, pattern="[!-9;-~]{1,200}", expected="1 to 200 visible ASCII characters without a colon"
    )
    clock = Text()
    scenario = Text()


class ProjectsForm(Form):
    """Several projects."""

    projects = Items(Part(ProjectForm), least=1, required=True)


class DeclaredProject(NamedTuple):
    """A project to create: its key, its settings, and its scenario."""

    api_key: str
    settings: Mapping[str, Any]
    scenario: Scenario | None


def read_all(paths: Sequence[Path], catalogue: Catalogue) -> list[DeclaredProject]:
    """The projects of all files.

    Raises:
        Invalid: lists all errors in all files, with line and column.
    """
    found: list[DeclaredProject] = []
    violations: list[Violation] = []
    keys: set[str] = set()
    for path in paths:
        try:
            document = parse_yaml(read_text(path), str(path))
            with document.placing(str(path)):
                found += _declared(document.data, catalogue, keys)
        except Invalid as invalid:
            violations += invalid.violations
    if violations:
        raise Invalid(violations)
    return found


def _declared(data: Any, catalogue: Catalogue, keys: set[str]) -> list[DeclaredProject]:
    """The projects of a file; ``keys`` are those declared so far."""
    if isinstance(data, dict) and "projects" in data:
        found, violations = _several(data, catalogue, keys)
    else:
        project, violations = _project(data, catalogue, keys)
        found = [project]
    if violations:
        raise Invalid(violations)
    return found


def _several(
    data: Mapping[str, Any], catalogue: Catalogue, keys: set[str]
) -> tuple[list[DeclaredProject], list[Violation]]:
    listed = data["projects"]
    items = listed if isinstance(listed, list) else []
    violations = [] if items else load(ProjectsForm(), data)[1]
    others = {key: value for key, value in data.items() if key != "projects"}
    violations += [unknown.violation() for unknown in unknown_keys(ProjectsForm(), others)]
    found = []
    for index, item in enumerate(items):
        project, more = _project(item, catalogue, keys)
        violations += [_below(f"projects[{index}]", problem) for problem in more]
        found.append(project)
    return found, violations


def _below(path: str, problem: Violation) -> Violation:
    return problem._replace(path=f"{path}.{problem.path}" if problem.path else path)


def _project(data: Any, catalogue: Catalogue, keys: set[str]) -> tuple[DeclaredProject, list[Violation]]:
    """One project, as far as it could be read, and all its violations."""
    item, violations = load(ProjectForm(), data, most=None)
    violations += [unknown.violation() for unknown in unknown_keys(ProjectForm(), data)]
    key = item.get("api_key")
    if key is not None and key in keys:
        violations.append(Violation("api_key", "is the key of another declared project"))
    keys |= {key} if key is not None else set()
    scenario, more = _scenario(item, catalogue)
    settings = {name: value for name, value in item.items() if name not in BESIDES}
    return DeclaredProject(key or "", settings, scenario), violations + more


def _scenario(item: Mapping[str, Any], catalogue: Catalogue) -> tuple[Scenario | None, list[Violation]]:
    """The project's scenario, and the violations of its name and the clock."""
    violations: list[Violation] = []
    scenario = None
    try:
        ClockStart.parse(item.get("clock", RUNNING))
    except Invalid as invalid:
        violations += invalid.violations
    try:
        scenario = catalogue.find(item["scenario"]) if "scenario" in item else None
    except Invalid as invalid:
        violations += [problem._replace(path="scenario") for problem in invalid.violations]
    return scenario, violations
