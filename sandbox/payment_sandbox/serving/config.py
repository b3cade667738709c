"""The configuration of a server."""

from collections.abc import Sequence
from pathlib import Path
from ssl import SSLContext
from typing import Final, NamedTuple, Protocol

from flask import Flask

from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.services import Observer


class Security(NamedTuple):
    """The TLS context for https, if any, and the trusted certificates of webhook receivers."""

    tls: SSLContext | None = None
    trusted_receivers: SSLContext | None = None
    authority: Path | None = None  # the sandbox's own certificate, which clients must trust

    @property
    def scheme(self) -> str:
        """The scheme of the server's addresses."""
        return "http" if self.tls is None else "https"


NO_TLS: Final = Security()


class SiteServer(Protocol):
    """Serves one application."""

    port: int
    url: str

    def start(self, application: Flask, registry: Registry) -> None:
        """Serve on a background thread."""
        ...

    def stop(self) -> None:
        """Stop serving, and release everything."""
        ...


class Limits(NamedTuple):
    """The limits of a server."""

    threads: int = 256  # calls that may wait, each on a thread
    streams: int = 256
    silent_seconds: float = 10.0  # the longest wait for the client to send a piece of a body
    body_seconds: float = 30.0  # the longest time for a body
    snapshot_seconds: float = 600.0  # the longest time for a snapshot


class ServerConfig(NamedTuple):
    """The address, the protection and the initial projects of a server."""

    host: str = "127.0.0.1"
    port: int = 0  # 0: any free port
    listener: SiteServer | None = None  # used instead of an HTTP server on host and port
    limits: Limits | None = None  # limits of that HTTP server
    public_url: str | None = None
    allow_hosts: Sequence[str] = ()
    control_token: str | None = None
    security: Security = NO_TLS
    observer: Observer | None = None  # notified of projects, and of requests without a project
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
