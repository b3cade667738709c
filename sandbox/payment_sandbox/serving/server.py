"""Builds, binds, starts and stops the sandbox."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from payment_sandbox.kernel.ids import Ids, fresh_seed
from payment_sandbox.methods import NAMES
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.declared import DeclaredProject, read_all
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.registry import FIRST_API_KEY, Registry
from payment_sandbox.projects.services import Unattended
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.binding import bind, reachable_url, url_of
from payment_sandbox.serving.listeners import Listener
from payment_sandbox.serving.services import REAL_TIME, ServerServices
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.storage.snapshot import send_owed
from payment_sandbox.web.app import make_app, move

if TYPE_CHECKING:
    from payment_sandbox.storage.sqlite import StateFile


class Start(TypedDict, total=False):
    """The initial state of a server's projects."""

    seed: int | None
    clock: str
    scenario_folders: Sequence[Path]
    scenario: str | None  # of the first project
    project_files: Sequence[Path]
    state: Path | None


class Server:
    """One sandbox on one port, in this process; ``port`` 0 takes any free one."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        public_url: str | None = None,
        control_token: str | None = None,
        allow_hosts: Sequence[str] = (),
        freeze_memory: bool = False,
        listener: Listener | None = None,
        **start: Unpack[Start],
    ) -> None:
        """Bind the port and build the sandbox; serving begins with ``start``.

        A ``listener`` serves it instead of an HTTP server on ``host`` and ``port``.

        Raises:
            PortTaken: the address is in use or does not belong to this host.
            Invalid: the ``clock`` or a scenario or project file is invalid, or a scenario does not exist.
            StateRefused: the ``state`` file cannot be used.
        """
        self.services = ServerServices(freeze_memory=freeze_memory)
        self.file = _state_file(start.get("state"))
        try:
            self._make_projects(start)
            self._http = listener or _http_server(host, port)
        except BaseException:
            self._close_file()
            raise
        self.port = self._http.port
        self.local_url = listener.url if listener is not None else url_of(host, self.port)
        url = listener.url if listener is not None else reachable_url(host, self.port)
        self.url = (public_url or url).rstrip("/")
        self.app = make_app(
            self.registry,
            public_url=self.url,
            control_token=control_token or None,
            allow_hosts=(host, *allow_hosts),
        )

    def start(self) -> None:
        """Serve on background threads."""
        self._http.start(self.app, always_on_threads=self.file is not None)
        self.services.pacer.start()
        for project in self.registry.all():
            send_owed(project)

    def listen(self, listener: Listener) -> None:
        """Serve at another address, after one where nobody could connect."""
        self._http.stop()
        self._http, self.port, self.local_url, self.url = listener, listener.port, listener.url, listener.url
        move(self.app, self.url)
        listener.start(self.app, always_on_threads=self.file is not None)

    def stop(self) -> None:
        """Stop within two seconds; requests still running end with their threads."""
        for project in self.registry.all():
            project.events.end()  # ends every wait and event stream
        self.services.courier.stop()
        for project in self.registry.all():
            project.epoch.outbox.close()
        self.services.pacer.stop()
        self._http.stop()
        self._close_file()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _make_projects(self, start: "Start") -> None:
        """Create the projects of the state file and project files, and the default one (CTL-04)."""
        catalogue = Catalogue(
            NAMES, check_scenario_settings, start.get("scenario_folders", ()), default=default_scenario()
        )
        seed = start.get("seed")
        ids = Ids(fresh_seed() if seed is None else seed)
        clock = start.get("clock", RUNNING)
        self.registry = registry = (
            Registry(self.services, MemoryStorage(), catalogue, ids=ids, clock=clock)
            if self.file is None
            else _resumed(self.services, self.file, catalogue, ids, clock)
        )
        name = start.get("scenario")
        scenario = catalogue.find(name) if name is not None else None
        declared = read_all(start.get("project_files", ()), catalogue)
        for project in (*declared, DeclaredProject(FIRST_API_KEY, {"name": "sandbox"}, scenario)):
            if not registry.is_known(project.api_key):
                made, _ = registry.create(project.settings, api_key=project.api_key)
                is_first = project.api_key == FIRST_API_KEY
                made.activate(project.scenario or (scenario if is_first else None) or default_scenario())

    def _close_file(self) -> None:
        if self.file is not None:
            self.file.close()


def _http_server(host: str, port: int) -> Listener:
    bound = bind(host, port)
    from payment_sandbox.serving.http import HttpServer  # here, because other listeners need none

    return HttpServer(bound)


def _catalogue(folders: Sequence[Path] = ()) -> Catalogue:
    return Catalogue(NAMES, check_scenario_settings, folders, default=default_scenario())


def unattended_registry() -> Registry:
    """Build a registry without a server, for callers that need only the application's routes."""
    return Registry(Unattended(REAL_TIME), MemoryStorage(), _catalogue())


def description() -> str:
    """Return the OpenAPI 3.1 description of both APIs as JSON text."""
    from payment_sandbox.web.openapi import document  # here, for a faster start

    return document(make_app(unattended_registry(), public_url="http://127.0.0.1:8080"), make_app)


def _resumed(
    services: ServerServices, file: "StateFile", catalogue: Catalogue, ids: Ids, clock: str
) -> Registry:
    from payment_sandbox.storage.resuming import resumed_registry  # here, because most servers have no file

    return resumed_registry(services, file, catalogue, ids=ids, clock=clock)


def _state_file(path: Path | None) -> "StateFile | None":
    if path is None:
        return None
    from payment_sandbox.storage.sqlite import StateFile  # here, because most servers have no file

    return StateFile(path)
