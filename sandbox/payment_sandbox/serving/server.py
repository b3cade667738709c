"""Builds, binds, starts and stops the sandbox."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from payment_sandbox.loading import LOADING
from payment_sandbox.methods import NAMES
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import Unattended
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.binding import bind, reachable_url, url_of
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.listeners import SiteServer
from payment_sandbox.serving.services import REAL_TIME, Housekeeper, Observer, ServerServices
from payment_sandbox.serving.sessions import Trust
from payment_sandbox.serving.starting import Start, is_database, make_projects
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.storage.snapshot import send_owed
from payment_sandbox.web.app import make_app, move
from payment_sandbox.web.carried import Around

if TYPE_CHECKING:
    from ssl import SSLContext

    from payment_sandbox.serving.cluster import Cluster
    from payment_sandbox.serving.connection import Limits
    from payment_sandbox.storage.postgresql import Database
    from payment_sandbox.storage.sqlite import StateFile
    from payment_sandbox.web.app import SandboxFlask


class Security(NamedTuple):
    """The server's TLS, if it speaks https besides http, and whom it trusts to receive webhooks."""

    tls: "SSLContext | None" = None
    trusted_receivers: Trust | None = None
    authority: Path | None = None  # the certificate that clients have to trust, if it is the sandbox's own

    @property
    def scheme(self) -> str:
        """The scheme of the server's addresses."""
        return "http" if self.tls is None else "https"


FINISH_SECONDS: Final = 60.0  # for calls under way; those that only wait are ended
NO_TLS: Final = Security()


def _addresses(listener: "SiteServer | None", host: str, port: int, scheme: str) -> tuple[str, str]:
    """Where a server listens, and where others reach it if nobody says otherwise."""
    if listener is not None:
        return listener.url, listener.url
    return url_of(host, port), reachable_url(host, port, scheme)


class Server:
    """One sandbox on one port, in this process; ``port`` 0 takes any free one."""

    cluster: "Cluster | None" = None  # this server's part, where several share their projects
    _housekeeper: Housekeeper | None = None
    _is_http = False

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        public_url: str | None = None,
        control_token: str | None = None,
        allow_hosts: Sequence[str] = (),
        freeze_memory: bool = False,
        listener: SiteServer | None = None,
        observer: Observer | None = None,
        security: Security = NO_TLS,
        limits: "Limits | None" = None,
        webhooks_stay_here: bool = False,  # unless a project allows another machine
        **start: Unpack[Start],
    ) -> None:
        """Bind the port and build the sandbox; serving begins with ``start``.

        A ``listener`` serves instead of an HTTP server with ``limits``; an ``observer`` sees projects, and
        requests of none. ``ignored`` is what ``start`` asks of existing projects.

        Raises:
            PortTaken: the address is in use or does not belong to this host.
            Invalid: the ``clock``, an address or a file is invalid, or a scenario does not exist.
            StateRefused: the ``state`` file cannot be used.
        """
        courier = Courier(trusted=security.trusted_receivers, stays_here=webhooks_stay_here)
        self.security = security
        self.services = ServerServices(courier, start.get("quotas"), observer, freeze_memory=freeze_memory)
        self.kept = _kept(start.get("state"), self.services)
        try:
            self.registry, self.ignored = make_projects(self.services, self.kept, start)
            self._http = listener or self._http_server(host, port, limits, start)
        except BaseException:
            self._close()
            raise
        self.port = self._http.port
        self.local_url, reached = _addresses(listener, host, self.port, security.scheme)
        self.url = (public_url or reached).rstrip("/")
        self.app = self._made_app((host, *allow_hosts), control_token, observer, start)

    def _made_app(
        self, hosts: Sequence[str], control_token: str | None, observer: Observer | None, start: Start
    ) -> "SandboxFlask":
        on_refused = observer.refused if observer is not None else None
        speaks_tls, counted = self.security.tls is not None, self.services.courier.statistics
        around = Around(on_refused, speaks_tls, self.cluster, counted)
        return make_app(
            self.registry,
            public_url=self.url,
            control_token=control_token or None,
            allow_hosts=hosts,
            around=around,
        )

    def _http_server(self, host: str, port: int, limits: "Limits | None", start: Start) -> SiteServer:
        is_worker = start.get("is_worker", False)
        bound, self._is_http = bind(host, port, is_shared=is_worker), True
        with LOADING:
            from payment_sandbox.serving.http import HttpServer  # here, because other listeners need none

        if self.registry.is_shared:
            with LOADING:
                from payment_sandbox.serving.cluster import Cluster  # here: most servers stand alone

            self.cluster = Cluster(self.registry, reachable_url(host, bound.getsockname()[1]))
        return HttpServer(bound, self.security.tls, limits, self.cluster, self.services.courier.statistics)

    def start(self) -> None:
        """Serve on background threads.

        Raises:
            NotStored: the database that servers share does not answer.
        """
        if self.cluster is not None:
            self.cluster.start()
        self._http.start(self.app)
        self.services.pacer.start()
        if self.cluster is None and (self.kept is not None or self._is_http):
            self._housekeeper = Housekeeper(self.registry)
            self._housekeeper.start()
        for project in self.registry.loaded():
            send_owed(project)

    def listen(self, listener: SiteServer) -> None:
        """Serve at another address, after one where nobody could connect."""
        self._http.stop()
        self._http, self.port, self.local_url, self.url = listener, listener.port, listener.url, listener.url
        move(self.app, self.url)
        listener.start(self.app)

    def stop(self, noticed_seconds: float = 0.0) -> None:
        """Stop within two seconds; requests still running end with their threads.

        A server of several says that it is draining for at least ``noticed_seconds``, and then answers what
        is under way.
        """
        if self.cluster is not None:
            self.cluster.drain(noticed_seconds)
            self._end_waiting()
            self._http.finish(FINISH_SECONDS)
        self._end_waiting()
        self.services.courier.stop()
        for project in self.registry.loaded():
            project.epoch.outbox.close()
        self.services.pacer.stop()
        self._http.stop()
        if self._housekeeper is not None:
            self._housekeeper.stop()
        self._close()

    def _end_waiting(self) -> None:
        for project in self.registry.loaded():
            project.end_waiting()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _close(self) -> None:
        if self.cluster is not None:
            self.cluster.stop()
        if self.kept is not None:
            self.kept.close()


def _catalogue(folders: Sequence[Path] = ()) -> Catalogue:
    return Catalogue(NAMES, check_scenario_settings, folders, default=default_scenario())


def unattended_registry() -> Registry:
    """Build a registry without a server, for callers that need only the application's routes."""
    return Registry(Unattended(REAL_TIME), MemoryStorage(), _catalogue())


def description() -> str:
    """Return the OpenAPI 3.1 description of both APIs as JSON text."""
    with LOADING:
        from payment_sandbox.web.openapi import document  # here, for a faster start

    return document(make_app(unattended_registry(), public_url="http://127.0.0.1:8080"), make_app)


def _joined(address: str, services: ServerServices) -> "Database":
    try:
        with LOADING:
            from payment_sandbox.serving.cluster import joined  # here, because most servers have no database
    except ImportError as missing:  # the driver, or the library that it needs
        raise StateRefused(
            f"a database needs a driver: pip install 'payment-orders-sandbox[postgresql]' ({missing})"
        ) from missing
    return joined(address, services)


def _kept(state: Path | str | None, services: ServerServices) -> "StateFile | Database | None":
    """What keeps all projects, if they outlive the process."""
    if state is None:
        return None
    if isinstance(state, str) and is_database(state):
        return _joined(state, services)
    with LOADING:
        from payment_sandbox.storage.sqlite import StateFile  # here, because most servers have no file

    return StateFile(Path(state))
