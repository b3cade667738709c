"""Access to a sandbox in this process, or to the sandbox at ``SANDBOX_URL``."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import requests

from payment_sandbox import app
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.orders.order import LOCALES
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.catalogue import ready_texts
from payment_sandbox.serving import config, lazy_servers
from payment_sandbox.serving.server import Server
from payment_sandbox.serving.sessions import describe_failure, direct_session
from payment_sandbox.testing.clients import intercepting, with_requests
from payment_sandbox.ui.pages import language

FAKE_FILE_SYSTEM: Final = "pyfakefs"
HEALTH_TIMEOUT_SECONDS: Final = 10.0
UNAUTHORIZED: Final = 401


SOCKET_BLOCKED: Final = (RuntimeError, Warning)
"""Raised by pytest-socket and similar plugins; its warning comes first, and is an error in many suites."""


class SandboxNotFound(RuntimeError):
    """No sandbox answers at ``SANDBOX_URL``; the message describes the failure."""


def print_to_stderr(line: str) -> None:
    """Print a line where test runners other than pytest do not capture it."""
    print(line, file=sys.__stderr__, flush=True)


class SandboxAccess:
    """A sandbox in this or another process, with its address and clients."""

    report: Callable[[str], None] = staticmethod(print_to_stderr)
    """Shows a line to whoever waits for the tests; pytest's plugin replaces it."""

    def __init__(
        self,
        base_url: str | None = None,
        control_token: str | None = None,
        *,
        scenario_folders: Sequence[Path] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Start a sandbox in this process, or use the sandbox at ``base_url``.

        ``settings`` are the defaults for every project. Scenarios in ``scenario_folders`` can be used by
        name.

        Raises:
            SandboxNotFound: no sandbox answers at ``base_url``.
            Invalid: a file in a scenario folder is invalid.
        """
        self.in_process: Server | None = None
        self.base_url = base_url or ""
        self._control_token, self._settings = control_token, dict(settings or {})
        self._interceptions: intercepting.Interceptions | None = None
        self._has_no_port = False
        self._transport: Any  # shared by all projects, to save connections
        if base_url is None:
            try:
                listener: lazy_servers.LazyServer | lazy_servers.NoPort = lazy_servers.LazyServer()
            except SOCKET_BLOCKED:
                listener, self._has_no_port = lazy_servers.NoPort(), True
            try:
                facts = config.ServerConfig(
                    listener=listener, scenario_folders=scenario_folders, webhooks_only_local=True
                )
                server = app.build(facts)
            except BaseException:
                listener.stop()
                raise
            server.start()
            if FAKE_FILE_SYSTEM in sys.modules:  # later, a test may hide the files
                ready_texts()
                with suppress(ModuleNotFoundError):  # without the extra [server], there are no pages
                    for tag in LOCALES:
                        language.Language(tag).amount(0)
            self.in_process = server
            self.base_url = self.in_process.url
            self._transport = with_requests.DirectSession(self.in_process)
        else:
            self.base_url = _check_server(base_url, control_token or "")
            self._transport = direct_session()

    def retry_listening(self) -> None:
        """Listen, if sockets were forbidden when the server started but are allowed now."""
        server = self.in_process
        if server is None or not self._has_no_port:
            return
        with suppress(*SOCKET_BLOCKED):
            server.listen(lazy_servers.LazyServer())
            self.base_url, self._has_no_port = server.url, False

    def session_for(self, api_key: str) -> requests.Session:
        """Create a session with the key; it needs no sockets if the server is in this process."""
        if self.in_process is None:
            return direct_session(api_key)
        return with_requests.create_session(self.in_process, api_key)

    def client_for(self, api_key: str) -> SandboxClient:
        """Create a client for a project; it needs no sockets if the server is in this process."""
        return SandboxClient(
            self.base_url, api_key, session=self._transport, control_token=self._control_token
        )

    def project_of(self, api_key: str) -> Project | None:
        """Return the project with this key, if the server is in this process."""
        return self.in_process.registry.find(api_key) if self.in_process is not None else None

    @property
    def interceptions(self) -> "intercepting.Interceptions":
        """The interceptions of requests to providers.

        Raises:
            RuntimeError: the server runs in another process.
        """
        if self.in_process is None:
            raise RuntimeError("intercept needs the sandbox in this process; unset SANDBOX_URL")
        if self._interceptions is None:
            self._interceptions = intercepting.Interceptions(self.in_process)
        return self._interceptions

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the server if it runs in this process; leaving its context does it, too."""
        if self._interceptions is not None:
            self._interceptions.stop_all()
        self._transport.close()
        if self.in_process is not None:
            self.in_process.stop()

    stop = close


def _check_server(base_url: str, control_token: str) -> str:
    """Check that a sandbox answers and takes the token; return its address without a trailing slash."""
    url = base_url.rstrip("/")
    if "://" not in url:
        raise SandboxNotFound(f"SANDBOX_URL is {base_url!r}, without a scheme: use http://{url}")
    with direct_session() as session:
        try:
            answer = session.get(f"{url}/health/", timeout=HEALTH_TIMEOUT_SECONDS)
            bearer = {"Authorization": f"Bearer {control_token}"}
            projects = session.get(f"{url}/control/projects/", headers=bearer, timeout=HEALTH_TIMEOUT_SECONDS)
        except (OSError, ValueError) as error:
            raise SandboxNotFound(
                f"no sandbox answers at SANDBOX_URL {url} ({describe_failure(error, url)}); "
                "start one with payment-sandbox serve, or unset SANDBOX_URL"
            ) from None
    try:
        is_sandbox = answer.json()["status"] == "ok" and "version" in answer.json()
        refusal = projects.json()["error"]["value"] if projects.status_code == UNAUTHORIZED else None
    except (ValueError, KeyError, TypeError):
        is_sandbox, refusal = False, None
    if not is_sandbox:
        raise SandboxNotFound(
            f"the server at SANDBOX_URL {url} is not a payment sandbox; "
            "give the address of payment-sandbox serve, such as http://127.0.0.1:8080, or unset SANDBOX_URL"
        )
    if refusal is not None:
        raise SandboxNotFound(f"SANDBOX_URL {url}: {refusal}")
    return url
