"""The configuration of a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.projects.clock import RUNNING

if TYPE_CHECKING:
    from ssl import SSLContext

    from payment_sandbox.serving.front import Limits
    from payment_sandbox.serving.lazy_servers import SiteServer
    from payment_sandbox.serving.services import Observer


class Security(NamedTuple):
    """The TLS context for https, if any, and the trusted certificates of webhook receivers."""

    tls: "SSLContext | None" = None
    trusted_receivers: "SSLContext | None" = None
    authority: Path | None = None  # the sandbox's own certificate, which clients must trust

    @property
    def scheme(self) -> str:
        """The scheme of the server's addresses."""
        return "http" if self.tls is None else "https"


NO_TLS: Final = Security()


class ServerConfig(NamedTuple):
    """The address, the protection and the initial projects of a server."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    listener: "SiteServer | None" = None  # used instead of an HTTP server on host and port
    limits: "Limits | None" = None  # limits of that HTTP server
    public_url: str | None = None
    allow_hosts: Sequence[str] = ()
    control_token: str | None = None
    security: Security = NO_TLS
    observer: "Observer | None" = None  # notified of projects, and of requests without a project
    webhooks_only_local: bool = False  # send webhooks only to this machine and to hosts that a project allows
    deliver_to: Sequence[str] = ()  # the only webhook hosts; all hosts if empty
    state: Path | str | None = None  # an SQLite file
    max_projects: int | None = None
    seed: int | None = None
    clock: str = RUNNING
    scenario_folders: Sequence[Path] = ()
    project_files: Sequence[Path] = ()
    scenario: str | None = None  # for the first project
    webhook_url: str | None = None  # for the first project
