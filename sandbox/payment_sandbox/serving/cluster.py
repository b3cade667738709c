"""A server's part in a sandbox of many servers: the projects that it owns, and where the others are.

A project lives on one server at a time, in memory as on a server of its own. Whichever server gets a request
for it serves it, if it owns the project; takes it over, if nobody does; or passes the request on.
"""

import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from secrets import token_hex
from threading import Condition, Lock, Thread, current_thread
from typing import Final, NamedTuple

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import FIRST_PROJECT_ID, Registry, digest
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.connection import say_once
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import start
from payment_sandbox.storage.codec import NotStored, StateRefused, in_one_line
from payment_sandbox.storage.connections import Unavailable
from payment_sandbox.storage.history import store_history
from payment_sandbox.storage.postgresql import (
    LEASE_SECONDS,
    Address,
    Database,
    Lease,
    PeerServer,
    PostgresStorage,
    PostgresStore,
)
from payment_sandbox.storage.rows import StoredProject, read_identity, resumed_project
from payment_sandbox.storage.snapshot import send_owed
from payment_sandbox.version import __version__
from payment_sandbox.web.statistics import Statistics

HEARTBEAT_SECONDS: Final = 1.0
AWAITED_SECONDS: Final = 2.0  # for a heartbeat that is late
MARGIN_SECONDS: Final = 1.5  # of the lease, for what is under way when it ends
LOOK_SECONDS: Final = 0.5  # between looks for projects that nobody looks after
TAKEN_AT_ONCE: Final = 20
IDLE_SECONDS: Final = 60.0
RECENTLY_SECONDS: Final = 0.5  # for how long it is believed where a project is

log = logging.getLogger(__name__)


class Elsewhere(NamedTuple):
    """The server that a request has to be passed on to."""

    server_id: str
    address: Address


class Here(NamedTuple):
    """This server owns the project."""

    project_id: str


class ClusterRegistry(Registry):
    """The projects of all servers; those that this one owns are in memory."""

    is_shared = True

    def __init__(
        self,
        services: Services,
        database: Database,
        catalogue: Catalogue,
        *,
        ids: Ids | None,
        clock: str = RUNNING,
    ) -> None:
        super().__init__(services, database, catalogue, ids=ids, clock=clock)
        self.database = database

    def find(self, api_key: str) -> Project | None:
        """The project with this API key; if another server owns it, a copy without records to read from."""
        return super().find(api_key) or (self._copy(digest(api_key)) if api_key else None)

    def is_known(self, api_key: str) -> bool:
        """Whether a project has this API key, or a deleted one had it."""
        return self.find(api_key) is not None or self.database.was_deleted(digest(api_key))

    def all(self) -> list[Project]:
        """All projects, oldest first; those of other servers as copies without records."""
        stored = self.database.without_records()
        return [self.find_by_id(each.identity["project_id"]) or self._opened(each) for each in stored]

    def count(self) -> int:
        """How many projects there are, on whatever server."""
        return self.database.count()

    def prune(self, unused_seconds: float) -> list[str]:
        """Delete unused projects of this server, and those that no server has in memory."""
        deleted = super().prune(unused_seconds)
        return [*deleted, *self.database.prune(unused_seconds, FIRST_PROJECT_ID)]

    def _copy(self, name: str) -> Project | None:
        return next(map(self._opened, self.database.without_records(name)), None)

    def _opened(self, stored: StoredProject) -> Project:
        identity = read_identity(stored.identity)
        lease = Lease(identity.project_id, token=-1)  # it writes nothing
        storage = PostgresStorage(self.database, identity, lease)
        return resumed_project(identity, stored, self.services, storage)


class Cluster:
    """What this server owns, and its heartbeat; a server that cannot reach the database serves nothing."""

    def __init__(
        self,
        database: Database,
        registry: ClusterRegistry,
        address: Address,
        statistics: Statistics,
    ) -> None:
        self.registry = registry
        self.secret = database.shared_value("secret", token_hex(32))
        self.is_draining = False
        self._database = database
        self._address = address
        self._statistics = statistics
        self._changed = Condition()  # guards what follows
        self._valid_until_seconds = 0.0
        self._uses: Counter[str] = Counter()  # requests under way, by project
        self._used_at_seconds: dict[str, float] = {}
        self._leaving: set[str] = set()  # projects that are given back; no request begins
        self._elsewhere: dict[str, tuple[Elsewhere, float]] = {}  # and when that was looked up
        self._alive: frozenset[str] = frozenset()
        self._moving: dict[str, Lock] = {}  # one for each project that is taken over or given back
        self._problem = "it does not answer"  # why there is no lease
        self._is_stopped = False
        self._threads = [
            Thread(target=self._keep, args=work, name=name, daemon=True)
            for name, work in {
                "heartbeat": (self._beat, HEARTBEAT_SECONDS),
                "caretaker": (self._care, LOOK_SECONDS),
            }.items()
        ]

    @property
    def commits(self) -> int:
        """How many this server has made."""
        return self._database.commits

    def servers(self) -> list[PeerServer]:
        """All servers that are alive, oldest first."""
        return self._database.servers()

    def start(self) -> None:
        """Join the other servers.

        Raises:
            NotStored: the database does not answer.
        """
        self._database.replace(self._address.url)
        self._beat()
        for thread in self._threads:
            start(thread)

    # Requests

    def hold(self, subject: str) -> Callable[[], None] | None:
        """Keep a project here until what this returns is called; None if it is not here."""
        project = self.registry.local(subject)
        if project is None:
            return None
        project_id = project.project_id
        with self._changed:
            is_here = monotonic_seconds() < self._valid_until_seconds and not _lease(project).is_lost
            if not is_here or project_id in self._leaving:
                return None
            self._uses[project_id] += 1
        return lambda: self._end_use(project_id)

    def sequence(self, subject: str) -> int:
        """How many commits a project has had that is here."""
        project = self.registry.local(subject)
        return -1 if project is None else _lease(project).sequence

    def is_alive(self, server_id: str) -> bool:
        """Whether a server was alive a moment ago."""
        return server_id in self._alive

    def suspect(self, subject: str) -> None:
        """Look up again where a project is: the server that should have it did not answer."""
        with self._changed:
            self._elsewhere.pop(subject, None)

    def known(self, subject: str) -> Elsewhere | None:
        """Where a project was a moment ago, if that was on another server."""
        known = self._elsewhere.get(subject)
        is_recent = known is not None and monotonic_seconds() < known[1] + RECENTLY_SECONDS
        return known[0] if known is not None and is_recent else None

    def locate(self, subject: str) -> Here | Elsewhere | None:
        """Where the project with this id or key digest is, after taking it over if nobody owns it.

        Raises:
            Unavailable: the database does not answer.
            NotStored: the project changes servers just now, or this one stops and there is no other.
        """
        project = self.registry.local(subject)
        if project is not None and _lease(project).is_lost:
            self._drop(project)
        self._await_lease()
        owner = self._database.locate(subject)
        if owner is None:
            return None
        if owner.server_id not in (None, self._database.server_id):
            elsewhere = Elsewhere(str(owner.server_id), Address(str(owner.url), owner.fingerprint))
            self._remember(subject, elsewhere)
            return elsewhere
        if self.is_draining:
            with self._one_at_a_time(owner.project_id):  # until it is given back
                return self._another()
        return self._take(owner.project_id)

    def _remember(self, subject: str, elsewhere: Elsewhere) -> None:
        now = monotonic_seconds()
        with self._changed:
            if len(self._elsewhere) > 10_000:
                self._elsewhere.clear()
            self._elsewhere[subject] = (elsewhere, now)
            self._alive |= {elsewhere.server_id}

    def _another(self) -> Elsewhere:
        """Another server, for a project that this one does not take any more."""
        me = self._database.server_id
        for server in self._database.servers():
            if server.server_id != me and not server.is_draining:
                return Elsewhere(server.server_id, Address(server.url, server.fingerprint))
        raise NotStored(self._database.place, "this server stops, and there is no other", is_full=False)

    def _await_lease(self) -> None:
        with self._changed:
            if not self._changed.wait_for(
                lambda: monotonic_seconds() < self._valid_until_seconds, AWAITED_SECONDS
            ):
                raise Unavailable(self._database.place, self._problem, is_full=False)

    def may_deliver(self, project: Project) -> bool:
        """Wait until this server's lease outlasts an attempt to deliver a webhook of a project.

        Otherwise another server could take the project over meanwhile, and send the webhook, too. Returns
        False if that has happened.
        """

        def is_over() -> bool:
            return self._is_stopped or project.is_deleted

        def may_begin() -> bool:
            return is_over() or monotonic_seconds() + TIMEOUT_SECONDS < self._valid_until_seconds

        with self._changed:
            self._changed.wait_for(may_begin)
            return not is_over()

    def _end_use(self, project_id: str) -> None:
        with self._changed:
            self._uses[project_id] -= 1
            self._used_at_seconds[project_id] = monotonic_seconds()
            if not self._uses[project_id]:
                del self._uses[project_id]
                self._changed.notify_all()

    # Taking projects over, and giving them back

    def _take(self, project_id: str) -> Here:
        """Take a project over, with one thread, while others wait.

        Raises:
            NotStored: another server takes it over just now, or what is stored of it is damaged.
        """
        with self._one_at_a_time(project_id):
            project = self.registry.local(project_id)
            if project is not None and not _lease(project).is_lost:
                return Here(project_id)
            if project is not None:
                self._drop(project)
            claimed = self._database.claim(project_id)
            if claimed is None:
                raise NotStored("the project", "another server takes it over just now", is_full=False)
            try:
                identity = read_identity(claimed.stored.identity)
                storage = PostgresStorage(self._database, identity, claimed.lease)
                project = resumed_project(
                    identity, claimed.stored, self.registry.services, storage, self._database.place
                )
            except (Invalid, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
                raise NotStored(
                    f"project {project_id}", f"it is damaged: {in_one_line(error)}", is_full=False
                ) from error
            with self._changed:
                self._used_at_seconds[project_id] = monotonic_seconds()
                self._leaving.discard(project_id)
            project.used_at_seconds -= claimed.unused_seconds
            self.registry.add(project)
            self._statistics.took_over()
            send_owed(project)
        return Here(project_id)

    def _one_at_a_time(self, project_id: str) -> Lock:
        with self._changed:
            if len(self._moving) > 10_000:
                self._moving = {name: lock for name, lock in self._moving.items() if lock.locked()}
            return self._moving.setdefault(project_id, Lock())

    def _drop(self, project: Project) -> None:
        """Forget a project that is not this server's any more, or whose state is not certain."""
        self.registry.drop(project)
        project.end(moved=True)
        with self._changed:
            self._leaving.discard(project.project_id)
            self._used_at_seconds.pop(project.project_id, None)

    def _give_back(self, project: Project, within_seconds: float) -> None:
        """Give a project back, unless a request is under way for too long and this server does not stop."""
        project_id = project.project_id
        with self._one_at_a_time(project_id):
            with self._changed:
                self._leaving.add(project_id)
                is_unused = self._changed.wait_for(lambda: not self._uses[project_id], within_seconds)
                if not is_unused and not self.is_draining:
                    self._leaving.discard(project_id)
                    return
            if self.is_draining:
                project.settle(within_seconds)
            lease = _lease(project)
            unused_seconds = project.unused_seconds()
            due_seconds = _seconds_until_due(project, unused_seconds)
            store_history(project)
            self._drop(project)
            if not lease.is_lost:
                self._database.release(lease, due_seconds, unused_seconds)

    def drain(self, within_seconds: float, noticed_seconds: float) -> None:
        """Give all projects back; requests that come meanwhile are passed on.

        This takes at least ``noticed_seconds``, after which a load balancer has asked how this server is.
        """
        begun = monotonic_seconds()
        until_seconds = begun + within_seconds
        with self._changed:
            self.is_draining = True
        with suppress(NotStored):
            self._database.beat(self._address, __version__, is_draining=True)
            for project in self.registry.loaded():
                self._give_back(project, max(until_seconds - monotonic_seconds(), 0.0))
        with self._changed:  # until nobody believes any more that a project is here
            left_seconds = begun + noticed_seconds - monotonic_seconds()
            self._changed.wait_for(lambda: self._is_stopped, max(RECENTLY_SECONDS, left_seconds))

    def stop(self) -> None:
        """End the heartbeat, and leave the other servers."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(AWAITED_SECONDS)
        with suppress(NotStored):
            self._database.leave()

    # The heartbeat

    def _keep(self, work: Callable[[], None], every_seconds: float) -> None:
        """Do something again and again, until this server stops."""
        while not self._is_over(every_seconds):
            try:
                work()
            except NotStored as failed:
                self._problem = failed.reason
                say_once(str(failed))
            except Exception:
                log.exception("%s failed", current_thread().name)

    def _is_over(self, within_seconds: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._is_stopped, within_seconds)
            return self._is_stopped

    def _care(self) -> None:
        """Give back what is idle, and take over what nobody looks after; it may take longer than a lease."""
        self.give_back_idle(IDLE_SECONDS)
        if not self.is_draining:
            self._take_unattended()

    def _beat(self) -> None:
        """Renew the lease; after a lapse, drop what others have taken over meanwhile."""
        begun = monotonic_seconds()
        was_known = self._database.beat(self._address, __version__, is_draining=self.is_draining)
        if begun >= self._valid_until_seconds or not was_known:
            tokens = self._database.tokens()
            for project in self.registry.loaded():
                if tokens.get(project.project_id) != _lease(project).token:
                    _lease(project).is_lost = True
                    self._drop(project)
        alive = frozenset(server.server_id for server in self._database.servers())
        with self._changed:
            self._alive = alive
            self._valid_until_seconds = begun + LEASE_SECONDS - MARGIN_SECONDS
            self._changed.notify_all()

    def _take_unattended(self) -> None:
        """Take projects over in which something is due, or whose server has gone."""
        for project_id in self._database.unattended(TAKEN_AT_ONCE):
            with suppress(NotStored):
                self._take(project_id)

    def give_back_idle(self, idle_seconds: float) -> None:
        """Give back what nobody has used for so long, so that a server holds only what is busy."""
        now = monotonic_seconds()
        for project in self.registry.loaded():
            used_at_seconds = self._used_at_seconds.setdefault(project.project_id, now)
            if used_at_seconds < now - idle_seconds and self._is_idle(project, idle_seconds):
                self._give_back(project, 0.0)

    def _is_idle(self, project: Project, idle_seconds: float) -> bool:
        due_seconds = project.real_seconds_until_due()
        is_due = due_seconds is not None and due_seconds < idle_seconds
        is_used = self._uses[project.project_id] or project.events.watchers
        return not (is_due or is_used) and project.epoch.outbox.is_idle


def _seconds_until_due(project: Project, unused_seconds: float) -> float | None:
    """How long until something is due, or the project has not been used for long enough to be deleted."""
    due_seconds, most = project.real_seconds_until_due(), project.settings.idle_seconds_max
    times = [] if due_seconds is None else [due_seconds]
    times += [] if most is None else [max(most - unused_seconds, 0.0) + 1.0]
    return min(times, default=None)


def _lease(project: Project) -> Lease:
    store = project.epoch.store
    assert isinstance(store, PostgresStore), "all projects here are stored there"
    return store.lease


def joined(address: str, services: Services) -> Database:
    """The database at this address, as a server sees it that has just begun.

    Raises:
        StateRefused: it cannot be used, and why.
    """
    database = Database(address, token_hex(8), services.real)
    try:
        database.beat(Address(""), __version__, is_draining=False)  # before it owns anything
    except NotStored as failed:
        raise StateRefused(str(failed)) from failed
    return database


def cluster_of(registry: Registry, address: Address, statistics: Statistics) -> Cluster:
    """This server's part; ``address`` is where the other servers reach it.

    Raises:
        NotStored: the database does not answer.
    """
    assert isinstance(registry, ClusterRegistry), "it is shared"
    return Cluster(registry.database, registry, address, statistics)
