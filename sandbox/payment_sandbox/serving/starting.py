"""The initial projects of a server: stored projects, declared projects, and the default project."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from payment_sandbox.forms import Form, FormPart, Items, Text, load, unknown_keys
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import RUNNING, Start
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY, Registry
from payment_sandbox.projects.settings import SettingsForm, check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue, read_text
from payment_sandbox.scenarios.documents import parse_yaml
from payment_sandbox.scenarios.model import Scenario
from payment_sandbox.serving.config import ServerConfig

NON_SETTING_KEYS: Final = ("api_key", "scenario")  # the other keys of a declaration


class ProjectForm(SettingsForm):
    """One project: its key, its settings, and its initial clock and scenario."""

    api_key = Text(
        required=True, pattern="[!-9;-~]{1,200}", expected="1 to 200 visible ASCII characters without a colon"
    )
    clock = Text()
    scenario = Text()


class ProjectsForm(Form):
    """Several projects."""

    projects = Items(FormPart(ProjectForm), least=1, wrong_max=10_000, required=True)


class DeclaredProject(NamedTuple):
    """A project to create: its key, its settings, and its scenario."""

    api_key: str
    settings: Mapping[str, Any]
    scenario: Scenario | None


def read_declared_projects(paths: Sequence[Path], catalogue: Catalogue) -> list[DeclaredProject]:
    """Read the projects of all files.

    Raises:
        Invalid: lists all errors in all files, with line and column.
    """
    declared: list[DeclaredProject] = []
    violations: list[Violation] = []
    keys: set[str] = set()
    for path in paths:
        try:
            document = parse_yaml(read_text(path), str(path))
            with document.add_positions(str(path)):
                declared += _read_declarations(document.data, catalogue, keys)
        except Invalid as invalid:
            violations += invalid.violations
    if violations:
        raise Invalid(violations)
    return declared


def _read_declarations(data: Any, catalogue: Catalogue, keys: set[str]) -> list[DeclaredProject]:
    """Read the projects of a file; ``keys`` are the API keys declared so far."""
    are_several = isinstance(data, dict) and "projects" in data
    form = ProjectsForm() if are_several else ProjectForm()
    loaded, violations = load(form, data, most=None)
    violations += [unknown.violation(unknown.nearest()) for unknown in unknown_keys(form, data)]
    items = loaded.get("projects", []) if are_several else [loaded]
    for index, item in enumerate(items):
        path = f"projects[{index}]." if are_several else ""
        problems = _problems(item, catalogue, keys)
        violations += [problem._replace(path=f"{path}{problem.path}") for problem in problems]
    if violations:
        raise Invalid(violations)
    return [_declared_project(item, catalogue) for item in items]


def _declared_project(item: Mapping[str, Any], catalogue: Catalogue) -> DeclaredProject:
    settings = {name: value for name, value in item.items() if name not in NON_SETTING_KEYS}
    scenario = catalogue.find(item["scenario"]) if "scenario" in item else None
    return DeclaredProject(item["api_key"], settings, scenario)


def _problems(item: Mapping[str, Any], catalogue: Catalogue, keys: set[str]) -> Iterator[Violation]:
    """Yield the violations of a project's key, clock and scenario."""
    key = item.get("api_key")
    if key in keys:
        yield Violation("api_key", "is the key of another declared project")
    keys |= {key} if key is not None else set()
    try:
        Start.parse(item.get("clock", RUNNING))
    except Invalid as invalid:
        yield from invalid.violations
    try:
        _ = catalogue.find(item["scenario"]) if "scenario" in item else None
    except Invalid as invalid:
        yield from (problem._replace(path="scenario") for problem in invalid.violations)


FIRST_PROJECT_NAME: Final = "sandbox"


def load_catalogue(folders: Sequence[Path] = ()) -> Catalogue:
    """Load the built-in scenarios and the scenarios in folders."""
    return Catalogue(METHOD_NAMES, check_scenario_settings, folders, default=default_scenario())


def declared_projects(config: ServerConfig, catalogue: Catalogue) -> list[DeclaredProject]:
    """Return the projects of the files, and the default project of the options, unless a file declares it.

    Raises:
        Invalid: the ``clock``, ``webhook_url``, or a scenario or project file is invalid, or a scenario is
        unknown.
    """
    declared = read_declared_projects(config.project_files, catalogue)
    if all(project.api_key != FIRST_API_KEY for project in declared):
        declared.append(DeclaredProject(FIRST_API_KEY, {"name": FIRST_PROJECT_NAME}, None))
    options = {}
    if config.webhook_url is not None:
        options["webhook_url"] = config.webhook_url
    if config.clock != RUNNING:
        options["clock"] = config.clock
    scenario = catalogue.find(config.scenario) if config.scenario is not None else None
    return [
        DeclaredProject(FIRST_API_KEY, {**options, **project.settings}, project.scenario or scenario)
        if project.api_key == FIRST_API_KEY
        else project
        for project in declared
    ]


def create_declared(declared: Iterable[DeclaredProject], registry: Registry) -> list[str]:
    """Create the missing projects; return sentences about configuration that existing ones ignore.

    Raises:
        Invalid: the settings of a project are invalid.
    """
    ignored: list[str] = []
    for project in declared:
        if registry.is_known(project.api_key):
            ignored += _describe_ignored(registry, project)
            continue
        chosen = {"scenario": project.scenario.name} if project.scenario is not None else {}
        registry.create({**project.settings, **chosen}, api_key=project.api_key)
    return ignored


def _describe_ignored(registry: Registry, declared: DeclaredProject) -> Iterator[str]:
    """Describe the configuration that an existing project ignores."""
    name = declared.settings.get("name") or FIRST_PROJECT_NAME
    project, damaged = registry.find(declared.api_key), registry.find_damaged(declared.api_key)
    if damaged is not None:
        yield f"project {name} is damaged, so it is not created again"
        return
    if project is None:
        yield f"project {name} was deleted, so it is not created again"
        return
    differing = list(_differing_settings(project, declared))
    if differing:
        yield (
            f"project {name} already exists and keeps its {', '.join(differing)}; the commands settings, "
            "scenario and clock change them"
        )


def _differing_settings(project: Project, declared: DeclaredProject) -> Iterator[str]:
    state = project.epoch.state
    before: Mapping[str, Any] = state.base_settings.document
    for setting, value in declared.settings.items():
        if setting == "clock":
            configured, start = Start.parse(value), project.identity.start
            if configured.mode != start.mode or configured.at not in (None, start.at):
                yield setting
        elif before[setting] != value:
            yield setting
    if declared.scenario is not None and declared.scenario.name != state.scenario.name:
        yield "scenario"
