"""All projects of a server, found by API key or by identifier."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Final

from sandbox.kernel.ids import SEED_BITS, Ids, fresh_seed
from sandbox.methods import NAMES
from sandbox.orders.refusals import Invalid
from sandbox.projects.clock import ClockStart, RealTime
from sandbox.projects.project import Project
from sandbox.projects.settings import Settings, check_scenario_settings, read_settings
from sandbox.scenarios.catalogue import Catalogue

FIRST_API_KEY: Final = "sandbox-key"


class Registry:
    """Makes, finds and deletes projects."""

    def __init__(
        self,
        real: RealTime,
        *,
        seed: int | None = None,
        clock: str = "running",
        scenario_folders: Sequence[Path] = (),
    ) -> None:
        """Read the scenario folders.

        Raises:
            Invalid: lists all that is wrong in all files.
        """
        self.catalogue = Catalogue(NAMES, check_scenario_settings, scenario_folders)
        self._real = real
        self._ids = Ids(fresh_seed() if seed is None else seed)
        self._clock = clock
        self._lock = Lock()
        self._by_key: dict[str, Project] = {}
        self._by_id: dict[str, Project] = {}
        self.on_created: Callable[[Project], None] = lambda project: None

    def create(self, data: Any, api_key: str | None = None) -> Project:
        """Make a project from its settings (CTL-06).

        Raises:
            Invalid: lists every wrong setting; nothing is made.
        """
        clock = data.get("clock", self._clock) if isinstance(data, dict) else self._clock
        given = (
            {key: value for key, value in data.items() if key != "clock"} if isinstance(data, dict) else data
        )
        start, settings = _both(lambda: ClockStart.parse(clock), lambda: read_settings(given, Settings()))
        with self._lock:
            if not isinstance(data, dict) or "seed" not in data:
                settings = replace(settings, seed=self._ids.number("seed", 2**SEED_BITS))
            project = Project(
                self._ids.uuid("project"),
                self._ids.uuid("merchant"),
                api_key or self._ids.token("key"),
                settings,
                start,
                self._real,
            )
            self._by_key[project.api_key] = project
            self._by_id[project.project_id] = project
        self.on_created(project)
        return project

    def find(self, api_key: str) -> Project | None:
        """The project of an API key."""
        return self._by_key.get(api_key)

    def find_by_id(self, project_id: str) -> Project | None:
        """The project of an identifier, for pages that carry one in their address."""
        return self._by_id.get(project_id)

    def all(self) -> list[Project]:
        """All projects, oldest first."""
        return list(self._by_id.values())

    def delete(self, project: Project) -> None:
        """Forget a project: its key is refused from now on, its pending work dropped (CTL-07)."""
        with self._lock:
            self._by_key.pop(project.api_key, None)
            self._by_id.pop(project.project_id, None)
        with project.state_lock:
            project.is_deleted = True
        project.reset()


def _both(
    read_start: Callable[[], ClockStart], read_rest: Callable[[], Settings]
) -> tuple[ClockStart, Settings]:
    violations = []
    start, settings = ClockStart("running"), Settings()
    try:
        start = read_start()
    except Invalid as invalid:
        violations += invalid.violations
    try:
        settings = read_rest()
    except Invalid as invalid:
        violations += invalid.violations
    if violations:
        raise Invalid(violations)
    return start, settings
