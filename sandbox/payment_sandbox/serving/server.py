"""Builds a sandbox from its configuration, and starts and stops it."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.loading import lazy
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.app import make_app
from payment_sandbox.serving.binding import bind, reachable_url, url_of
from payment_sandbox.serving.config import Security, ServerConfig
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.lazy_servers import SiteServer
from payment_sandbox.serving.services import Housekeeper, ServerServices
from payment_sandbox.serving.starting import create_projects
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.web.site import ServerContext

if TYPE_CHECKING:
    from payment_sandbox.serving import http
    from payment_sandbox.serving.app import SandboxApp
    from payment_sandbox.storage import sqlite
else:
    http = lazy("payment_sandbox.serving.http")
    sqlite = lazy("payment_sandbox.storage.sqlite")

DATABASE_SCHEMES: Final = ("postgresql://", "postgres://")


@dataclass(eq=False)
class Server:
    """A sandbox in this process, created by ``build``."""

    app: "SandboxApp"
    url: str  # the URL for merchants and payers
    local_url: str  # the URL of the listening port
    security: Security
    services: ServerServices
    registry: Registry
    ignored: Sequence[str]  # sentences about configuration that existing projects ignore
    state: "sqlite.StateFile | None"  # the durable storage, if any
    listener: SiteServer
    housekeeper: Housekeeper | None  # set if journals are stored or clients may create projects

    @property
    def port(self) -> int:
        """The listening port."""
        return self.listener.port

    def start(self) -> None:
        """Serve on background threads."""
        self.listener.start(self.app)
        self.services.scheduler.start()
        if self.housekeeper is not None:
            self.housekeeper.start()
        for project in self.registry.all():
            project.send_pending()

    def listen(self, listener: SiteServer) -> None:
        """Replace the listener of a server that accepted no connections."""
        self.listener.stop()
        self.listener, self.local_url, self.url = listener, listener.url, listener.url
        self.app.site.change_public_url(self.url)
        listener.start(self.app)

    def stop(self) -> None:
        """Stop within two seconds, without waiting for requests in progress."""
        for project in self.registry.all():
            project.end_waiting()
        self.services.courier.stop()
        for project in self.registry.all():
            project.epoch.outbox.close()
        self.services.scheduler.stop()
        self.listener.stop()
        if self.housekeeper is not None:
            self.housekeeper.stop()
        if self.state is not None:
            self.state.close()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def build(config: ServerConfig) -> Server:
    """Bind the port and build the sandbox; serving begins with ``Server.start``.

    Raises:
        PortInUse: the address is in use or does not belong to this host.
        Invalid: the ``clock``, an address or a file is invalid, or a scenario is unknown.
        StateRefused: the ``state`` cannot be used.
    """
    courier = Courier(
        trusted=config.security.trusted_receivers,
        local_only=config.webhooks_only_local,
        allowed_hosts=config.deliver_to,
    )
    services = ServerServices(courier, config.max_projects, config.observer)
    with ExitStack() as on_failure:
        storage = _open_file(config.state)
        if storage is not None:
            on_failure.callback(storage.close)
        registry, ignored = create_projects(services, storage, config)
        endpoint = _create_endpoint(config, on_failure)
        server = Server(
            app=_create_app(config, registry, endpoint),
            url=endpoint.url,
            local_url=endpoint.local_url,
            security=config.security,
            services=services,
            registry=registry,
            ignored=ignored,
            state=storage,
            listener=endpoint.listener,
            housekeeper=Housekeeper(registry) if storage is not None or config.listener is None else None,
        )
        on_failure.pop_all()
    return server


class _Endpoint(NamedTuple):
    """A server's listener and its URLs."""

    listener: SiteServer
    local_url: str
    url: str


def _create_endpoint(config: ServerConfig, on_failure: ExitStack) -> _Endpoint:
    """Return the configured listener, or an HTTP server that is closed ``on_failure``."""
    listener, public_url = config.listener, (config.public_url or "").rstrip("/")
    if listener is not None:
        return _Endpoint(listener, listener.url, public_url or listener.url)
    bound = bind(config.host, config.port)
    on_failure.callback(bound.close)
    port, tls = bound.getsockname()[1], config.security.tls
    listener = http.HttpServer(bound, tls, config.limits)
    reachable = reachable_url(config.host, port, config.security.scheme)
    return _Endpoint(listener, url_of(config.host, port), public_url or reachable)


def _create_app(config: ServerConfig, registry: Registry, endpoint: _Endpoint) -> "SandboxApp":
    on_refused = config.observer.on_refused if config.observer is not None else None
    return make_app(
        registry,
        public_url=endpoint.url,
        control_token=config.control_token or None,
        allow_hosts=(config.host, *config.allow_hosts),
        server_context=ServerContext(on_refused, speaks_tls=config.security.tls is not None),
    )


def _open_file(state: Path | str | None) -> "sqlite.StateFile | None":
    """Open the configured SQLite file; None if none is configured.

    Raises:
        StateRefused: the file cannot be used, or the state is the address of a database.
    """
    if state is None:
        return None
    if str(state).startswith(DATABASE_SCHEMES):
        raise StateRefused(
            "the state cannot be in PostgreSQL; give an SQLite file, such as --state sandbox.db"
        )
    return sqlite.StateFile(Path(state))
