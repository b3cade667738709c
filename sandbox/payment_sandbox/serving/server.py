"""A sandbox in this process: its projects, its background work, and the port where it listens."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from flask import Flask

from payment_sandbox.extensions import missing_driver
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving import keeping
from payment_sandbox.serving.config import Security, ServerConfig, SiteServer
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.services import Housekeeper, ServerServices
from payment_sandbox.serving.starting import create_declared, declared_projects, load_catalogue
from payment_sandbox.storage import sql, sqlite
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.web.call import EXTENSION
from payment_sandbox.web.site import Site

DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")


class Sandbox:
    """The projects of an application, with the threads that work for them."""

    def __init__(self, config: ServerConfig, *, creates_projects: bool = True) -> None:
        """Create or restore the projects; clients may create more, if ``creates_projects``.

        Raises:
            Invalid: the ``clock``, an address or a file is invalid, or a scenario is unknown.
            StateRefused: the ``state`` cannot be used.
        """
        courier = Courier(
            trusted=config.security.trusted_receivers,
            local_only=config.webhooks_only_local,
            allowed_hosts=config.deliver_to,
        )
        self.services: Final = ServerServices(courier, config.max_projects, config.observer)
        catalogue = load_catalogue(config.scenario_folders)
        ids = Ids(config.seed) if config.seed is not None else None
        self.registry: Final = Registry(
            self.services, MemoryStorage(), catalogue, ids=ids, clock=config.clock
        )
        self._declared = declared_projects(config, catalogue)
        self.ignored: Sequence[str] = ()  # sentences about configuration that existing projects ignore
        self._lock = Lock()
        self._is_started = False
        self._file: sqlite.StateFile | None = None
        self.keeper: keeping.Keeper | None = None
        self._open(config.state)
        needs_housekeeper = config.state is not None or creates_projects
        self._housekeeper = Housekeeper(self.registry) if needs_housekeeper else None

    def _open(self, state: Path | str | None) -> None:
        """Open the state, if any, and load its projects.

        Raises:
            StateRefused: it cannot be used.
        """
        if state is not None and str(state).startswith(DATABASE_SCHEMES):
            try:
                self.keeper = keeping.Keeper(
                    str(state), self._load, lambda: self.registry.begin(self.registry.storages)
                )
            except ImportError as error:  # of the driver, or of the library that it needs
                raise StateRefused(str(missing_driver(error))) from error
            return
        with ExitStack() as on_failure:
            if state is not None:
                self._file = sqlite.StateFile(Path(state))
                on_failure.callback(self._file.close)
                sql.load_projects(self.registry, self._file, self._file.stored, sets_aside=False)
            self.ignored = create_declared(self._declared, self.registry)
            on_failure.pop_all()

    def _load(self, storage: "sql.SqlStorage", stored: "sql.StoredState") -> None:
        """Load the state of a database, as at a start.

        Raises:
            StateRefused, NotStored: it cannot be loaded.
        """
        sql.load_projects(self.registry, storage, stored, sets_aside=True)
        self.ignored = create_declared(self._declared, self.registry)
        with self._lock:
            if self._is_started:
                self._resume()

    @property
    def state(self) -> "sql.SqlStorage | None":
        """The database, if any."""
        return self.keeper.session if self.keeper is not None else self._file

    def guard(self, app: Flask) -> None:
        """Let the application answer its health only while another server has the state."""
        if self.keeper is not None:
            keeping.guard(app, self.keeper)

    def is_current(self) -> bool:
        """Whether the projects are those of the state; false at a standby."""
        return self.keeper is None or self.keeper.place() is not None

    def start(self) -> None:
        """Start the threads, unless they run: due events, stored journals, and webhooks of earlier runs."""
        with self._lock:
            if self._is_started:
                return
            self.services.scheduler.start()
            if self._housekeeper is not None:
                self._housekeeper.start()
            self._resume()
            self._is_started = True

    def _resume(self) -> None:
        """Send the webhooks of earlier runs, and run due events."""
        for project in self.registry.all():
            project.send_pending()

    def end_waiting(self) -> None:
        """End the waiting calls and the event streams, and send no more webhooks."""
        for project in self.registry.all():
            project.end_waiting()
        self.services.courier.stop()
        for project in self.registry.all():
            project.epoch.outbox.close()
        self.services.scheduler.stop()

    def close(self) -> None:
        """Store the remaining records, and close the state."""
        if self._is_started and self._housekeeper is not None:
            self._housekeeper.stop()
        if self.keeper is not None:
            self.keeper.stop()
        if self._file is not None:
            self._file.close()


class Endpoint(NamedTuple):
    """Where a server listens."""

    listener: SiteServer
    local_url: str  # the URL of the listening port
    url: str  # the URL for merchants and payers
    security: Security


class Server:
    """An application that listens on a port, created by ``payment_sandbox.app.build``."""

    def __init__(self, app: Flask, sandbox: Sandbox, endpoint: Endpoint) -> None:
        self.app: Final = app
        self.sandbox: Final = sandbox
        self.listener, self.local_url, self.url, self.security = endpoint

    @property
    def registry(self) -> Registry:
        """The projects."""
        return self.sandbox.registry

    @property
    def state(self) -> "sql.SqlStorage | None":
        """The database, if any."""
        return self.sandbox.state

    @property
    def port(self) -> int:
        """The listening port."""
        return self.listener.port

    def start(self) -> None:
        """Serve on background threads."""
        self.listener.start(self.app, self.registry)
        self.sandbox.start()

    def listen(self, listener: SiteServer) -> None:
        """Replace the listener of a server that accepted no connections."""
        self.listener.stop()
        self.listener, self.local_url, self.url = listener, listener.url, listener.url
        site: Site = self.app.extensions[EXTENSION]
        site.change_public_url(self.url)
        listener.start(self.app, self.registry)

    def stop(self) -> None:
        """Stop within two seconds: waiting calls end at once, and others get a moment."""
        self.sandbox.end_waiting()
        self.listener.stop()
        self.sandbox.close()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
