"""One server of a cluster. The servers share a database and do not communicate with each other.

Any server answers any request. The database holds the state of each project; memory is a cache. A few times a
second, one query reads the versions of the projects that clients of this server wait for or watch. Another
query finds orphaned projects: with a due agenda entry, or with a courier that has failed.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from threading import Event, Thread, current_thread
from typing import Final

from payment_sandbox.delivery.receivers import listener_of
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.operations.advance import run_due
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.events import Events
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import (
    CreateStore,
    Project,
    ProjectEntry,
    ProjectReset,
    Services,
)
from payment_sandbox.projects.registry import FIRST_PROJECT_ID, Registry, digest
from payment_sandbox.projects.settings import Settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.connection import log_once
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import start
from payment_sandbox.storage.codec import DamagedProject, NotStored, StateRefused, reading
from payment_sandbox.storage.rows import list_stored
from payment_sandbox.version import __version__
from payment_sandbox.web.site import DRAINING, OK
from payment_sandbox.web.statistics import Server
from payment_sandbox_company.cluster_tables import PeerServer
from payment_sandbox_company.following import Replica
from payment_sandbox_company.postgresql import Database
from payment_sandbox_company.project_rows import Head
from payment_sandbox_company.shared_storage import SharedStore, flush_all

FOLLOW_SECONDS: Final = 0.1
FLUSH_SECONDS: Final = 0.02
RENEW_SECONDS: Final = 2.0
CLEAN_UP_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 60.0
ADOPTIONS_MAX: Final = 20  # projects per round
JOIN_SECONDS: Final = 2.0  # to wait for each thread when the server stops

log = logging.getLogger(__name__)


class ClusterRegistry(Registry):
    """The projects of all servers, with a cache of the projects recently used on this server."""

    is_shared = True

    def __init__(
        self,
        services: Services,
        database: "JoinedDatabase",
        catalogue: Catalogue,
        *,
        ids: Ids | None,
        clock: str = RUNNING,
    ) -> None:
        super().__init__(services, database, catalogue, ids=ids, clock=clock)
        self.database = database

    def find(self, api_key: str) -> Project | None:
        """Refresh and return the project with an API key."""
        return self._refresh(super().find(api_key), digest(api_key)) if api_key else None

    def find_by_id(self, project_id: str) -> Project | None:
        """Refresh and return the project with an id."""
        return self._refresh(super().find_by_id(project_id), project_id)

    def is_known(self, api_key: str) -> bool:
        """Return whether a current or deleted project has this API key."""
        return self.database.is_known(digest(api_key))

    def all(self) -> list[Project]:
        """Return all projects that can be read, oldest first; this loads them."""
        projects: list[Project] = []
        for columns in self.database.projects():
            with reporting_damage():
                projects += filter(None, [self.find_by_id(columns.id)])
        return projects

    def listed(self) -> list[ProjectEntry]:
        """List all projects, oldest first, including those that cannot be read."""
        return [list_stored(columns, self.services.real) for columns in self.database.projects()]

    def count(self) -> int:
        """Return the number of projects."""
        return self.database.count()

    def prune(self, unused_seconds: float | None) -> list[str]:
        """Delete projects that have been idle for this long; None means each project's ``expires_after``."""
        self.record_use()
        deleted = self.database.prune(unused_seconds, FIRST_PROJECT_ID)
        for project_id in deleted:
            project = self.find_local(project_id)
            if project is not None:
                self._forget(project)
        return deleted

    def record_use(self) -> None:
        """Store the last use of the projects used since the previous call."""
        now = monotonic_seconds()
        used = [each for each in self.loaded_projects() if each.used_at_seconds > each.stored_use_seconds]
        if used:
            self.database.record_use([project.project_id for project in used])
        for project in used:
            project.stored_use_seconds = now

    def drop_idle(self, idle_seconds: float) -> None:
        """Evict projects from memory that have been idle for this long; they have no claims to release."""
        for project in self.loaded_projects():
            is_busy = not project.epoch.is_idle or project.epoch.is_advancing
            if project.unused_seconds() > idle_seconds and not is_busy and not _is_watched(project):
                self.drop(project)
                self.services.forget(project)

    def follow(self, project: Project, *, takes_over: bool = False) -> bool:
        """Refresh a project from the database; return False if it was deleted."""
        try:
            project.epoch.store.follow(takes_over=takes_over)
        except ProjectReset:
            self._forget(project)
            return False
        return True

    def _refresh(self, project: Project | None, name: str) -> Project | None:
        if project is None:
            identity = self.database.identity(name)
            return None if identity is None else self._load(identity)
        head = self.database.head(project.project_id)
        if head is None:
            self._forget(project)
            return None
        project.epoch.journal.invalidate()
        if store_of(project).is_current(head):
            return project
        return project if self.follow(project) else None

    def _load(self, identity: Identity) -> Project | None:
        """Load a project into memory.

        Raises:
            DamagedProject: the stored state cannot be read.
        """
        create_store = self.database.storage(identity.project_id)
        project = Project(identity, Settings(), self.services, create_store)
        try:
            project.epoch.store.follow()
        except ProjectReset:
            return None
        with self._lock:
            known = self._by_id.get(identity.project_id)
            if known is not None:  # another thread has loaded it in the meantime
                return known
            self._add(project)
        self.services.wake(project)
        return project

    def _add(self, project: Project) -> None:
        project.events.share = partial(self.database.queue_events, project.project_id)
        project.feed = Events(project.masking)
        super()._add(project)

    def _forget(self, project: Project) -> None:
        self.drop(project)
        project.end()


@contextmanager
def reporting_damage() -> Iterator[None]:
    """Report a damaged project once, so that its failure concerns no other project."""
    try:
        yield
    except DamagedProject as damaged:
        log_once(damaged.report)


def store_of(project: Project) -> SharedStore:
    """Return the shared store of a project."""
    store = project.epoch.store
    assert isinstance(store, SharedStore), "in a cluster, all stores are shared"
    return store


class JoinedDatabase(Database):
    """The shared database of a server, with the stores of its projects, its registry and its duties."""

    _registry: ClusterRegistry | None = None

    def storage(self, project_id: str) -> CreateStore:
        """Return what creates the stores of a project, which share a replica."""
        return partial(SharedStore, self, Replica(project_id, self.server_id))

    def registry(
        self, services: Services, catalogue: Catalogue, *, ids: Ids | None, clock: str
    ) -> ClusterRegistry:
        """Return the registry of the shared projects."""
        self._registry = ClusterRegistry(services, self, catalogue, ids=ids, clock=clock)
        return self._registry

    def cluster(self, url: str) -> "Cluster":
        """Return the cluster duties of the server at this URL.

        Raises:
            NotStored: the database does not answer.
        """
        assert self._registry is not None, "call registry first"
        return Cluster(self._registry, url)


def joined(address: str, services: Services) -> JoinedDatabase:
    """Connect to the database at this address, as a new server of the cluster.

    Raises:
        StateRefused: the database cannot be used; the message states the reason.
    """
    database = JoinedDatabase(address, token_hex(8), services.real)
    try:
        database.servers()
    except NotStored as failed:
        raise StateRefused(str(failed)) from failed
    return database


class Cluster:
    """The cluster duties of a server: follow versions, renew claims, and adopt orphaned projects."""

    def __init__(self, registry: ClusterRegistry, url: str) -> None:
        """Prepare the duties of the server at ``url``, its public URL.

        Raises:
            NotStored: the database does not answer.
        """
        self.registry = registry
        self.is_draining = False
        self._database = registry.database
        self.salt = self._database.shared_value("salt", token_hex(32))
        self._url = url
        self._stopped = Event()
        self._threads = [
            Thread(target=self._repeat, args=(work, every_seconds), name=name, daemon=True)
            for name, work, every_seconds in (
                ("project-follower", self._follow, FOLLOW_SECONDS),
                ("journal-writer", self._flush, FLUSH_SECONDS),
                ("orphan-adopter", self.adopt_orphans, FOLLOW_SECONDS),
                ("claim-renewer", self._renew, RENEW_SECONDS),
                ("cleaner", self._clean_up, CLEAN_UP_SECONDS),
            )
        ]

    @property
    def commit_count(self) -> int:
        """The number of commits by this server."""
        return self._database.commit_count

    def servers(self) -> list[Server]:
        """List the live servers, oldest first."""
        return [
            {
                "url": each.url,
                "version": each.version,
                "status": DRAINING if each.is_draining else OK,
                "projects": each.projects,
            }
            for each in self._database.servers()
        ]

    def start(self) -> None:
        """Start the background threads.

        Raises:
            NotStored: the database does not answer.
        """
        self._report()
        for thread in self._threads:
            start(thread)

    def drain(self, notice_seconds: float) -> None:
        """Report the server as draining for ``notice_seconds``, so that a load balancer notices."""
        self.is_draining = True
        with suppress(NotStored):
            self._report()
        self._stopped.wait(notice_seconds)

    def stop(self) -> None:
        """Stop, and release all claims, so that other servers can adopt the projects at once."""
        self._stopped.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(JOIN_SECONDS)
        with suppress(NotStored):
            self._flush()
            self.registry.record_use()
            self._database.leave()

    def _repeat(self, work: Callable[[], None], every_seconds: float) -> None:
        """Repeat ``work`` until this server stops."""
        while not self._stopped.wait(every_seconds):
            try:
                work()
            except NotStored as failed:
                log_once(str(failed))
            except Exception:
                log.exception("%s failed", current_thread().name)

    def _follow(self) -> None:
        """Refresh the projects that a client of this server waits for or watches."""
        loaded = self.registry.loaded_projects()
        followed = {each.project_id: each for each in loaded if _is_followed(each)}
        if not followed:
            return
        heads = self._database.heads(list(followed))
        for project_id, project in followed.items():
            with reporting_damage():
                self._refresh_project(project, heads.get(project_id))
        feeds = {project_id: each.feed for project_id, each in followed.items() if each.feed.watchers}
        if feeds:
            self._database.watch(feeds)

    def _refresh_project(self, project: Project, head: Head | None) -> None:
        store = store_of(project)
        if head is None or not store.is_current(head):
            self.registry.follow(project)
        store.check_stop_request()
        if listener_of(project).is_awaited and not project.epoch.is_advancing:
            project.epoch.outbox.send_unsent()
            if store.needs_courier:
                self.registry.follow(project, takes_over=True)

    def _flush(self) -> None:
        flush_all(self._database)
        self._database.flush_events()

    def adopt_orphans(self) -> None:
        """Adopt orphaned projects, and run their due agenda entries."""
        if self.is_draining:
            return
        for project_id in self._database.claim_orphans(ADOPTIONS_MAX):
            with reporting_damage(), suppress(ProjectReset), reading(project_id):
                project = self.registry.find_local(project_id) or self.registry.find_by_id(project_id)
                if project is not None and self.registry.follow(project, takes_over=True):
                    run_due(project)

    def _renew(self) -> None:
        self.registry.record_use()
        claimed = [each for each in self.registry.loaded_projects() if is_claimed(each)]
        for project in claimed:
            with reporting_damage():
                if store_of(project).is_hold_stale:
                    self.registry.follow(project, takes_over=True)
        if claimed:
            self._database.renew([project.project_id for project in claimed])
        self._report()

    def _report(self) -> None:
        version, projects = __version__, len(self.registry.loaded_projects())
        own = PeerServer(self._database.server_id, self._url, version, self.is_draining, projects)
        self._database.report(own)

    def _clean_up(self) -> None:
        """Delete expired projects and records, in memory and in the database."""
        self.registry.prune(None)
        self.registry.drop_idle(IDLE_SECONDS)
        self._database.purge_requests()
        for project in self.registry.loaded_projects():
            self._database.purge_history(project.project_id)


def _is_followed(project: Project) -> bool:
    epoch = project.epoch
    is_awaited = _is_watched(project) or listener_of(project).is_awaited
    return is_awaited or is_claimed(project) or not epoch.is_idle  # a claimed project must be current


def _is_watched(project: Project) -> bool:
    return project.events.is_followed or project.feed.is_followed


def is_claimed(project: Project) -> bool:
    """Return whether this server has a claim on a project, for its clock or its webhooks."""
    return store_of(project).is_claimed
