"""The projects that a server starts with: those of its state file, the declared ones, and the first one."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict

from payment_sandbox.kernel.ids import Ids, fresh_seed
from payment_sandbox.methods import NAMES
from payment_sandbox.projects.clock import RUNNING, ClockStart
from payment_sandbox.projects.declared import DeclaredProject, read_all
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY, Registry
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.services import ServerServices
from payment_sandbox.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from payment_sandbox.storage.sqlite import StateFile

FIRST_NAME: Final = "sandbox"


class Start(TypedDict, total=False):
    """The initial state of a server's projects."""

    seed: int | None
    clock: str
    scenario_folders: Sequence[Path]
    scenario: str | None  # of the first project
    webhook_url: str | None  # of the first project
    project_files: Sequence[Path]
    state: Path | None


class Started(NamedTuple):
    """The projects, and sentences about what was asked for but is ignored, since a project exists already."""

    registry: Registry
    ignored: list[str]


def make_projects(services: ServerServices, file: "StateFile | None", start: Start) -> Started:
    """Create the projects of the state file and project files, and the default one (CTL-04).

    Raises:
        Invalid: the ``clock``, ``webhook_url``, or a scenario or project file is invalid, or a scenario does
            not exist.
        StateRefused: the ``state`` file cannot be used.
    """
    catalogue = Catalogue(
        NAMES, check_scenario_settings, start.get("scenario_folders", ()), default=default_scenario()
    )
    seed = start.get("seed")
    ids = Ids(fresh_seed() if seed is None else seed)
    clock = start.get("clock", RUNNING)
    registry = (
        Registry(services, MemoryStorage(), catalogue, ids=ids, clock=clock)
        if file is None
        else _resumed(services, file, catalogue, ids, clock)
    )
    ignored: list[str] = []
    for project in _wanted(start, catalogue):
        if registry.is_known(project.api_key):
            ignored += _ignored(registry.find(project.api_key), project)
            continue
        made, _ = registry.create(project.settings, api_key=project.api_key)
        made.activate(project.scenario or default_scenario())
    return Started(registry, ignored)


def _wanted(start: Start, catalogue: Catalogue) -> Iterator[DeclaredProject]:
    """The declared projects, and the first one with its options, unless a file declares that, too."""
    declared = read_all(start.get("project_files", ()), catalogue)
    first = _first(start, catalogue)
    for project in declared:
        is_first = project.api_key == FIRST_API_KEY
        yield _filled(project, first) if is_first else project
    if all(project.api_key != FIRST_API_KEY for project in declared):
        yield _filled(first, DeclaredProject(FIRST_API_KEY, {"name": FIRST_NAME}, None))


def _filled(project: DeclaredProject, more: DeclaredProject) -> DeclaredProject:
    """The project, with what it does not say itself."""
    settings = {**more.settings, **project.settings}
    return DeclaredProject(project.api_key, settings, project.scenario or more.scenario)


def _first(start: Start, catalogue: Catalogue) -> DeclaredProject:
    """What the options say about the first project."""
    options: dict[str, Any] = {}
    if start.get("webhook_url") is not None:
        options["webhook_url"] = start.get("webhook_url")
    if start.get("clock", RUNNING) != RUNNING:
        options["clock"] = start.get("clock")
    name = start.get("scenario")
    scenario = catalogue.find(name) if name is not None else None
    return DeclaredProject(FIRST_API_KEY, options, scenario)


def _ignored(project: Project | None, declared: DeclaredProject) -> Iterator[str]:
    """What an existing project does not take over, in a sentence."""
    name = declared.settings.get("name") or FIRST_NAME
    if project is None:
        yield f"project {name} was deleted, so it is not created again"
        return
    differing = list(_differing(project, declared))
    if differing:
        yield (
            f"project {name} exists already and keeps its {', '.join(differing)}; the commands settings, "
            "scenario and clock change them"
        )


def _differing(project: Project, declared: DeclaredProject) -> Iterator[str]:
    state = project.epoch.state
    before: Mapping[str, Any] = state.base_settings.as_mapping()
    for setting, value in declared.settings.items():
        if setting == "clock":
            wanted, start = ClockStart.parse(value), project.identity.start
            if wanted.mode != start.mode or wanted.at not in (None, start.at):
                yield setting
        elif before[setting] != value:
            yield setting
    if declared.scenario is not None and declared.scenario.name != state.scenario.name:
        yield "scenario"


def _resumed(
    services: ServerServices, file: "StateFile", catalogue: Catalogue, ids: Ids, clock: str
) -> Registry:
    from payment_sandbox.storage.resuming import resumed_registry  # here, because most servers have no file

    return resumed_registry(services, file, catalogue, ids=ids, clock=clock)
