"""All projects of a server, found by API key or by identifier."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.kernel.ids import SEED_BITS, Ids, fresh_seed
from payment_sandbox.kernel.moments import timestamp
from payment_sandbox.methods import NAMES
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.clock import ClockStart, RealTime
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import Settings, check_scenario_settings, read_settings
from payment_sandbox.projects.store import MemoryStorage, StateRefused, Storage
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.storage.snapshot import FORMAT, resume

if TYPE_CHECKING:
    from payment_sandbox.storage.sqlite import StateFile

MEMORY: Final = MemoryStorage()
FIRST_API_KEY: Final = "sandbox-key"


@lru_cache(maxsize=1024)
def digest(api_key: str) -> str:
    """What a key is known by; clients send the same one again and again."""
    return sha256(api_key.encode(errors="surrogateescape")).hexdigest()


class Identity(NamedTuple):
    """The identifiers of a project."""

    project_id: str
    merchant_id: str


class Registry:
    """Makes, finds and deletes projects."""

    def __init__(
        self,
        real: RealTime,
        *,
        seed: int | None = None,
        clock: str = "running",
        scenario_folders: Sequence[Path] = (),
        state_file: "StateFile | None" = None,
    ) -> None:
        """Read the scenario folders, and the projects of the state file.

        Raises:
            Invalid: lists all that is wrong in all files.
            StateRefused: what the state file says does not hold together.
        """
        self.catalogue = Catalogue(NAMES, check_scenario_settings, scenario_folders)
        self._real = real
        self._clock = clock
        self._lock = Lock()
        self._file = state_file
        self._by_digest: dict[str, Project] = {}
        self._by_id: dict[str, Project] = {}
        self.on_created: Callable[[Project], None] = lambda project: None
        self.deleted: set[str] = set(state_file.server.get("deleted", ()) if state_file is not None else ())
        kept = state_file.server.get("ids") if state_file is not None else None
        self._ids = Ids(**kept) if kept is not None else Ids(fresh_seed() if seed is None else seed)
        if state_file is not None:
            self._resume(state_file)

    def create(self, data: Any, api_key: str | None = None) -> tuple[Project, str]:
        """Make a project from its settings (CTL-06); its API key is told here and never again.

        Raises:
            Invalid: lists every wrong setting; nothing is made.
        """
        clock = data.get("clock", self._clock) if isinstance(data, dict) else self._clock
        given = (
            {key: value for key, value in data.items() if key != "clock"} if isinstance(data, dict) else data
        )
        start, settings = _both(lambda: ClockStart.parse(clock), lambda: read_settings(given, Settings()))
        with self._lock, self._storage.together():
            if not isinstance(data, dict) or "seed" not in data:
                settings = replace(settings, seed=self._ids.number("seed", 2**SEED_BITS))
            identity = Identity(self._ids.uuid("project"), self._ids.uuid("merchant"))
            key = api_key or self._ids.token("key")
            if self._file is not None:
                self._keep(self._file, identity, key, start)
            project = self._add(identity, digest(key), settings, start)
        self.on_created(project)
        return project, key

    def find(self, api_key: str) -> Project | None:
        """The project of an API key."""
        return self._by_digest.get(digest(api_key))

    def is_known(self, api_key: str) -> bool:
        """Whether a project has, or had, this API key: nobody gets it twice."""
        return digest(api_key) in self._by_digest.keys() | self.deleted

    def find_by_id(self, project_id: str) -> Project | None:
        """The project of an identifier, for pages that carry one in their address."""
        return self._by_id.get(project_id)

    def all(self) -> list[Project]:
        """All projects, oldest first."""
        return list(self._by_id.values())

    def delete(self, project: Project) -> None:
        """Forget a project: its key is refused from now on, its pending work dropped (CTL-07)."""
        with self._lock:
            self._by_digest.pop(project.key_digest, None)
            self._by_id.pop(project.project_id, None)
            self.deleted.add(project.key_digest)
            if self._file is not None:
                self._file.forget(project.project_id)
                self._file.put_server("deleted", sorted(self.deleted))
        project.let_go()

    @property
    def _storage(self) -> Storage:
        return MEMORY if self._file is None else self._file

    def _add(self, identity: "Identity", key_digest: str, settings: Settings, start: ClockStart) -> Project:
        project = Project(*identity, key_digest, settings, start, self._real, self._storage)
        self._by_digest[key_digest] = project
        self._by_id[project.project_id] = project
        return project

    def _keep(self, file: "StateFile", identity: "Identity", key: str, start: ClockStart) -> None:
        file.put_server("ids", {"seed": self._ids.seed, "counts": self._ids.counts})
        file.add(
            identity.project_id,
            {
                **identity._asdict(),
                "key_digest": digest(key),  # nobody finds keys in the file
                "start_mode": start.mode,
                "start_at": timestamp(start.at) if start.at is not None else None,
            },
        )

    def _resume(self, file: "StateFile") -> None:
        """Have the projects that the file holds."""
        try:
            with file.reading():
                for kept in file.projects:
                    who = kept.identity
                    at = who["start_at"]
                    start = ClockStart(who["start_mode"], datetime.fromisoformat(at) if at else None)
                    identity = Identity(who["project_id"], who["merchant_id"])
                    project = self._add(identity, who["key_digest"], Settings(), start)
                    real_at = datetime.fromisoformat(kept.real_at) if kept.real_at else None
                    resume(project, {"format": FORMAT, **kept.state}, real_at)
        except (Invalid, KeyError, ValueError, TypeError) as error:
            raise StateRefused(f"{file.path} is damaged: {error}") from error


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
