"""Projects with fixed keys, declared in a YAML file for the start of a server."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from sandbox.forms import Form, Items, Part, Text, read
from sandbox.orders.refusals import Invalid, Violation
from sandbox.projects.clock import ClockStart
from sandbox.projects.settings import SettingsForm
from sandbox.scenarios.catalogue import Catalogue, read_text
from sandbox.scenarios.documents import Document, parse_yaml
from sandbox.scenarios.model import Scenario

BESIDES: Final = ("api_key", "scenario")  # what is no setting that creation takes


class ProjectForm(SettingsForm):
    """One project: its key, its settings, and where its clock and scenario begin."""

    api_key = Text(
        required=True, pattern="[!-9;-~]{1,200}", expected="1 to 200 visible ASCII letters without a colon"
    )
    clock = Text()
    scenario = Text()


class ProjectsForm(Form):
    """Several projects."""

    projects = Items(Part(ProjectForm), least=1, required=True)


class DeclaredProject(NamedTuple):
    """A project to make: its key, what creation takes, and its scenario."""

    api_key: str
    settings: Mapping[str, Any]
    scenario: Scenario | None


def read_all(paths: Sequence[Path], catalogue: Catalogue) -> list[DeclaredProject]:
    """The projects of all files.

    Raises:
        Invalid: lists all that is wrong in all files.
    """
    found: list[DeclaredProject] = []
    violations: list[Violation] = []
    for path in paths:
        try:
            found += read_declared(path, catalogue)
        except Invalid as invalid:
            violations += invalid.violations
    if violations:
        raise Invalid(violations)
    return found


def read_declared(path: Path, catalogue: Catalogue) -> list[DeclaredProject]:
    """The projects of a file that holds one, or several under ``projects``.

    Raises:
        Invalid: lists all that is wrong, each with line and column.
    """
    document = parse_yaml(read_text(path), str(path))
    with document.placing(str(path)):
        return list(_declared(document, catalogue))


def _declared(document: Document, catalogue: Catalogue) -> Iterator[DeclaredProject]:
    data = document.data
    several = isinstance(data, dict) and "projects" in data
    items = read(ProjectsForm(), data)["projects"] if several else [read(ProjectForm(), data)]
    violations: list[Violation] = []
    keys: set[str] = set()
    scenarios: list[Scenario | None] = []
    for index, item in enumerate(items):
        path = f"projects[{index}]." if several else ""
        if item["api_key"] in keys:
            violations.append(Violation(f"{path}api_key", "is the key of another project of this file"))
        keys.add(item["api_key"])
        try:
            ClockStart.parse(item.get("clock", "running"))
            scenarios.append(catalogue.find(item["scenario"]) if "scenario" in item else None)
        except Invalid as invalid:
            violations += [
                found._replace(path=f"{path}{found.path.replace('name', 'scenario')}")
                for found in invalid.violations
            ]
    if violations:
        raise Invalid(violations)
    for item, scenario in zip(items, scenarios, strict=True):
        settings = {key: value for key, value in item.items() if key not in BESIDES}
        yield DeclaredProject(item["api_key"], settings, scenario)
