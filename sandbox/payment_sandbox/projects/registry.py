"""The registry of a server's projects, by API key and by identifier."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from secrets import token_bytes
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.kernel.ids import SEED_BITS, Ids, fresh_seed, secret_key
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING, Start
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.locks import REGISTRY, ranked_lock
from payment_sandbox.projects.project import DROPPED, Project, Services
from payment_sandbox.projects.settings import DEFAULT_SETTINGS, NewProjectForm, Settings, read_settings
from payment_sandbox.projects.store import StateLost, Store
from payment_sandbox.scenarios.catalogue import Catalogue, is_name
from payment_sandbox.scenarios.loader import load_scenario
from payment_sandbox.scenarios.model import Scenario

FIRST_API_KEY: Final = "sandbox-key"
FIRST_PROJECT_ID: Final = "5a4dbeef-0000-4000-8000-000000000001"
"""The constant id of the first project, so that bookmarks survive restarts."""


SALT_BYTES: Final = 32


class Storages(Protocol):
    """Storage for all projects of a server."""

    def create_store(self, project: Project) -> Store:
        """Create the empty store of a project's next epoch."""

    def save_ids(self, ids: Ids) -> None:
        """Save the generator of project ids."""

    def remove(self, project_id: str, fixed_key: str | None) -> None:
        """Delete a project with all its records; ``fixed_key`` is the digest of a user-chosen key."""

    def was_deleted(self, key_digest: str) -> bool:
        """Whether a deleted project had this user-chosen key."""


NEW_PROJECT_FORM: Final = NewProjectForm()


@lru_cache(maxsize=1024)
def digest(api_key: str) -> str:
    """Compute the digest of an API key; cached, since clients repeat the same key."""
    return sha256(api_key.encode(errors="surrogateescape")).hexdigest()


class DamagedProject(NamedTuple):
    """A stored project that cannot be read, and why."""

    project_id: str
    key_digest: str
    problem: str


class _Contents:
    """The projects of one reading of the state, and the storage that they came from."""

    def __init__(self, storages: Storages, ids: Ids, salt: bytes) -> None:
        self.storages = storages
        self.ids = ids
        self.salt = salt
        self.lock = ranked_lock(REGISTRY)
        self.by_digest: dict[str, Project] = {}
        self.by_id: dict[str, Project] = {}
        self.damaged: dict[str, DamagedProject] = {}  # by the digest of the key

    def remove(self, project_id: str, key_digest: str, *, has_fixed_key: bool) -> None:
        """Remove a project; user-chosen keys are remembered, because generated ones never repeat."""
        with self.lock:
            self.storages.remove(project_id, key_digest if has_fixed_key else None)
            self.by_digest.pop(key_digest, None)
            self.by_id.pop(project_id, None)
            self.damaged.pop(key_digest, None)


class Registry:
    """The projects of a server; creates and deletes them."""

    def __init__(
        self,
        services: Services,
        storages: Storages,
        catalogue: Catalogue,
        *,
        ids: Ids | None = None,
        clock: str = RUNNING,
    ) -> None:
        """``ids`` generates project ids and API keys; by default, keys cannot be derived from stored data."""
        self.catalogue = catalogue
        self.services = services
        self._clock = clock
        self._first_ids = ids
        self._contents = _Contents(storages, self._new_ids(), token_bytes(SALT_BYTES))

    def begin(self, storages: Storages, ids: Ids | None = None, salt: bytes | None = None) -> None:
        """Begin without projects; drop those of an earlier reading, without waiting for their locks.

        ``ids`` continues the project ids of an earlier process, and ``salt`` the secrets of its pages.
        """
        before = self._contents
        self._contents = _Contents(storages, ids or self._new_ids(), salt or before.salt)
        for project in before.by_id.values():
            project.drop()

    def _new_ids(self) -> Ids:
        return self._first_ids.copy() if self._first_ids is not None else Ids(fresh_seed())

    @property
    def storages(self) -> Storages:
        """The storage of the projects."""
        return self._contents.storages

    @property
    def salt(self) -> bytes:
        """A secret of the state, from which those of forms and cookies are made."""
        return self._contents.salt

    def create(self, data: Any, api_key: str | None = None) -> tuple[Project, str]:
        """Create a project (CTL-06); only this call returns the API key.

        Raises:
            Invalid: lists every invalid setting; nothing is created.
        """
        start, settings, scenario = self._read_start(data)
        contents = self._contents
        with contents.lock:
            ids = contents.ids.copy()
            if not isinstance(data, dict) or "seed" not in data:
                settings = replace(settings, seed=ids.number("seed", 2**SEED_BITS))
            project_id, merchant_id = ids.uuid("project"), ids.uuid("merchant")
            key = api_key or (ids.token("key") if self._first_ids is not None else secret_key())
            contents.storages.save_ids(ids)
            contents.ids = ids
            if api_key == FIRST_API_KEY:
                project_id = FIRST_PROJECT_ID
            origin = format(fresh_seed(), "x")
            start = start._replace(settings=settings.stored)
            identity = Identity(project_id, merchant_id, digest(key), start, api_key is not None, origin)
            project = Project(identity, settings, self.services, contents.storages.create_store)
            project.masking.api_key = key
            project.begin(scenario, is_declared=api_key is not None)
            self._add(project, contents)
        self.services.wake(project)
        return project, key

    def _read_start(self, data: object) -> tuple[Start, Settings, Scenario | None]:
        """Read what a new project starts with.

        Raises:
            Invalid: lists every invalid setting.
        """
        values = dict(data) if isinstance(data, dict) else data
        clock, choice = self._clock, None
        if isinstance(values, dict):
            clock, choice = values.pop("clock", clock), values.pop("scenario", None)
        start, settings, scenario = Start(RUNNING), DEFAULT_SETTINGS, None
        violations: list[Violation] = []
        with _collecting(violations):
            start = Start.parse(clock)
        with _collecting(violations):
            settings = read_settings(values, settings, "", NEW_PROJECT_FORM)
        with _collecting(violations, "scenario"):
            if choice is not None:
                scenario = self.catalogue.choose(choice, settings.method_names)
        if violations:
            raise Invalid(violations)
        if start.mode == FROZEN and start.at is None:
            start = start._replace(at=self.services.real.wall_now())  # a reset returns to this time
        if scenario is not None:
            start = start._replace(scenario=scenario.document, is_named=is_name(choice))
        return start, settings, scenario

    def reset(self, project: Project) -> None:
        """Return a project to what it was started with (CTL-09); a scenario's changed file is read again.

        Raises:
            Invalid: the file is invalid now; nothing changes.
        """
        start = project.identity.start
        if start.scenario is None:
            scenario = default_scenario()
        elif start.is_named and self.catalogue.has(start.scenario["name"]):
            scenario = self.catalogue.find(start.scenario["name"])
        else:
            scenario = load_scenario(start.scenario, project.start_settings().method_names)
        project.reset(scenario)

    def add(self, project: Project) -> None:
        """Add an existing project, such as one from a state file."""
        with self._contents.lock:
            self._add(project, self._contents)

    def set_aside(self, damaged: DamagedProject) -> None:
        """Note a stored project that cannot be read; its records stay as they are."""
        self._contents.damaged[damaged.key_digest] = damaged

    @property
    def damaged(self) -> list[DamagedProject]:
        """The stored projects that cannot be read."""
        return list(self._contents.damaged.values())

    def find_damaged(self, api_key: str) -> DamagedProject | None:
        """Find a project that cannot be read by its API key."""
        return self._contents.damaged.get(digest(api_key))

    def delete_damaged(self, damaged: DamagedProject) -> None:
        """Delete a project that cannot be read, with its records."""
        self._contents.remove(damaged.project_id, damaged.key_digest, has_fixed_key=True)

    def find(self, api_key: str) -> Project | None:
        """Find a project by its API key."""
        return self._contents.by_digest.get(digest(api_key))

    def is_known(self, api_key: str) -> bool:
        """Whether a current or deleted project has this API key; deleted projects are not recreated."""
        hashed, contents = digest(api_key), self._contents
        is_stored = hashed in contents.by_digest or hashed in contents.damaged
        return is_stored or contents.storages.was_deleted(hashed)

    def has_digest(self, key_digest: str) -> bool:
        """Whether a project has the API key with this digest."""
        return key_digest in self._contents.by_digest

    def find_by_id(self, project_id: str) -> Project | None:
        """Find a project by the id in the URL of a page."""
        return self._contents.by_id.get(project_id)

    def all(self) -> list[Project]:
        """Return all projects, oldest first."""
        return list(self._contents.by_id.values())

    def count(self) -> int:
        """Return the number of projects."""
        return len(self._contents.by_id)

    def delete(self, project: Project) -> None:
        """Delete a project: refuse its key from now on, and drop its pending work (CTL-07)."""
        identity, contents = project.identity, self._contents
        if project.is_dropped or contents.by_id.get(project.project_id) not in (project, None):
            raise StateLost(DROPPED)
        contents.remove(project.project_id, identity.key_digest, has_fixed_key=identity.has_fixed_key)
        project.end()

    def _add(self, project: Project, contents: _Contents) -> None:
        contents.by_digest[project.identity.key_digest] = project
        contents.by_id[project.project_id] = project
        if contents is self._contents:
            self.services.on_opened(project)
        else:  # the state was read again in the meantime
            project.drop()


@contextmanager
def _collecting(violations: list[Violation], path: str = "") -> Iterator[None]:
    """Collect the violations raised inside; those of a scenario get its path, unless they name a file."""
    try:
        yield
    except Invalid as invalid:
        violations += [
            one._replace(path=".".join(filter(None, (path, one.path)))) if one.file is None else one
            for one in invalid.violations
        ]
