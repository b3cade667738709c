"""What all calls of a server share."""

from collections.abc import Callable, Iterable, Sequence
from secrets import token_bytes
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from flask import Flask

from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.slots import Slots
from payment_sandbox.web.statistics import Statistics

OnRefused = Callable[[str, str, int, str], None]
"""Is told of requests that no project's journal has: method, path, status, and why they were refused."""

OK: Final = "ok"
DRAINING: Final = "draining"
LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")


class Member(Protocol):
    """One of the servers of a sandbox."""

    @property
    def url(self) -> str:
        """Where people reach it."""
        ...

    @property
    def version(self) -> str:
        """Its version of the sandbox."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether it stops."""
        ...

    @property
    def projects(self) -> int:
        """How many projects it has."""
        ...


class Shared(Protocol):
    """What the servers of one sandbox share."""

    secret: str
    is_draining: bool
    """Whether this server accepts no more, to stop."""

    @property
    def commits(self) -> int:
        """How many this server has made to the database."""
        ...

    def servers(self) -> Sequence["Member"]:
        """All servers that are alive, oldest first."""
        ...


class Around(NamedTuple):
    """The server around an application."""

    on_refused: OnRefused | None = None
    speaks_tls: bool = False  # itself; if not, an https address is that of a proxy
    shared: Shared | None = None  # with other servers
    statistics: Statistics | None = None


ALONE: Final = Around()


class MakeApp(Protocol):
    """A function that builds an application for a registry."""

    def __call__(self, registry: Registry, *, public_url: str) -> Flask:
        """Build it."""
        ...


class Site:
    """One application: its projects, its addresses, and who may call it."""

    def __init__(
        self,
        app: Flask,
        registry: Registry,
        control_token: str | None,
        allow_hosts: Iterable[str],
        around: Around,
        make_app: MakeApp,
    ) -> None:
        """Anybody may call it at loopback addresses, at its public URL, and at ``allow_hosts``.

        ``make_app`` builds another application, such as the one that plays the examples.
        """
        self.app = app
        self.registry = registry
        self.control_token = control_token
        self.around = around
        self.make_app = make_app
        # Forms that one server shows may be sent to another.
        self.forgery_secret = token_bytes(32) if around.shared is None else around.shared.secret.encode()
        self.adapter = app.url_map.bind("sandbox")
        self.slots = Slots()  # what a face keeps for all projects
        self.hosts = frozenset(name.lower() for name in (*LOOPBACK_HOSTS, *allow_hosts))
        self.move(self.public_url)

    @property
    def public_url(self) -> str:
        """Where merchants and payers reach the server, without a trailing slash."""
        return self.registry.services.public_url

    @property
    def base_path(self) -> str:
        """The path prefix of the public URL, for a server behind a proxy; usually empty."""
        return urlsplit(self.public_url).path

    def path_of(self, endpoint: str, **values: Any) -> str:
        """The path of a route; values that are not in it are its query."""
        return self.adapter.build(endpoint, values)

    def move(self, public_url: str) -> None:
        """Change where the server is reached; addresses given out before stay as they are."""
        self.registry.services.public_url = public_url
        self.hosts |= {(urlsplit(public_url).hostname or "").lower()}

    def status(self) -> str:
        """Whether new clients should come to this server: ``ok`` or ``draining``."""
        shared = self.around.shared
        return DRAINING if shared is not None and shared.is_draining else OK

    def render(self, template: str, **context: Any) -> str:
        """A page made from a template."""
        return self.app.jinja_env.get_template(template).render(base=self.base_path, **context)
