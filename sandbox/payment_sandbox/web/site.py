"""The context of all calls: projects, URLs, access rules, and the server around the application."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from secrets import token_bytes
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from flask import Flask

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.slots import Slots
from payment_sandbox.web.statistics import Statistics

OnRefused = Callable[[str, str, int, str], None]
"""Receives refused requests that no journal records: method, path, status and reason."""

OK: Final = "ok"
DRAINING: Final = "draining"
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")


class ClusterMember(Protocol):
    """A server of a cluster."""

    @property
    def url(self) -> str:
        """The public URL."""
        ...

    @property
    def version(self) -> str:
        """The version of the sandbox."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether the server is draining."""
        ...

    @property
    def projects(self) -> int:
        """The number of projects in memory."""
        ...


class SharedCluster(Protocol):
    """The cluster that a server belongs to."""

    secret: str
    is_draining: bool
    """Whether this server is draining, before it stops."""

    @property
    def commit_count(self) -> int:
        """The number of database commits by this server."""
        ...

    def servers(self) -> Sequence["ClusterMember"]:
        """List the live servers, oldest first."""
        ...


class ServerContext(NamedTuple):
    """The server around an application."""

    on_refused: OnRefused | None = None
    speaks_tls: bool = False  # if false, a proxy terminates TLS for an https URL
    shared: SharedCluster | None = None  # the cluster, if any
    statistics: Statistics | None = None


NO_SERVER: Final = ServerContext()


REFUSED_CALLS_MAX: Final = 100


class RefusedCalls:
    """The newest calls to the merchant API without a project, which no journal records."""

    def __init__(self, real: RealTime) -> None:
        self._real = real
        self._calls: deque[tuple[datetime, str]] = deque(maxlen=REFUSED_CALLS_MAX)

    def add(self, sentence: str) -> None:
        """Add a call that was just refused."""
        self._calls.append((self._real.wall_now(), sentence))

    def calls_since(self, moment: datetime) -> list[str]:
        """Return the calls since this real time, oldest first."""
        return [sentence for at, sentence in list(self._calls) if at >= moment]


class MakeApp(Protocol):
    """A function that builds an application for a registry."""

    def __call__(self, registry: Registry, *, public_url: str) -> Flask:
        """Build the application."""
        ...


class Site:
    """One application: its projects, its URLs, and its access rules."""

    def __init__(
        self,
        app: Flask,
        registry: Registry,
        control_token: str | None,
        allow_hosts: Iterable[str],
        server_context: ServerContext,
        make_app: MakeApp,
    ) -> None:
        """Accept calls at loopback addresses, at the public URL and at ``allow_hosts``.

        ``make_app`` builds additional applications, such as the one for recorded examples.
        """
        self.app = app
        self.registry = registry
        self.control_token = control_token
        self.server_context = server_context
        self.make_app = make_app
        # A form from one server may be submitted to another.
        self.forgery_secret = (
            token_bytes(32) if server_context.shared is None else server_context.shared.secret.encode()
        )
        self.adapter = app.url_map.bind("sandbox")
        self.refused = RefusedCalls(registry.services.real)
        self.slots = Slots()  # data that the faces share across projects
        self.hosts = frozenset(name.lower() for name in (*LOOPBACK_HOSTS, *allow_hosts))
        self.change_public_url(self.public_url)

    @property
    def public_url(self) -> str:
        """The URL for merchants and payers, without a trailing slash."""
        return self.registry.services.public_url

    @property
    def base_path(self) -> str:
        """The path prefix of the public URL, for a server behind a proxy; usually empty."""
        return urlsplit(self.public_url).path

    def path_of(self, endpoint: str, **values: Any) -> str:
        """Build the path of a route; values that have no placeholder in the path become the query."""
        return self.adapter.build(endpoint, values)

    def change_public_url(self, public_url: str) -> None:
        """Change the public URL; URLs in earlier responses do not change."""
        self.registry.services.public_url = public_url
        self.hosts |= {(urlsplit(public_url).hostname or "").lower()}

    def status(self) -> str:
        """The health status for load balancers: ``ok`` or ``draining``."""
        shared = self.server_context.shared
        return DRAINING if shared is not None and shared.is_draining else OK

    def render(self, template: str, **context: Any) -> str:
        """Render a template."""
        return self.app.jinja_env.get_template(template).render(base=self.base_path, **context)
