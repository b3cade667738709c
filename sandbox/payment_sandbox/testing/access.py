"""The way to a sandbox: in this process, or the one at ``SANDBOX_URL``."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from payment_sandbox.client.client import SandboxClient, Transport
from payment_sandbox.loading import LOADING
from payment_sandbox.serving.sessions import direct_session, trouble

if TYPE_CHECKING:
    import requests

    from payment_sandbox.projects.project import Project
    from payment_sandbox.serving.server import Server
    from payment_sandbox.testing.clients.intercepting import Interceptions

HEALTH_TIMEOUT_SECONDS: Final = 10.0


class SandboxNotFound(RuntimeError):
    """There is no sandbox at ``SANDBOX_URL``; the message says what is there instead."""


class Access:
    """A sandbox in this process, or a running one: its address, and clients for it."""

    def __init__(
        self,
        base_url: str | None = None,
        control_token: str | None = None,
        *,
        scenario_folders: Sequence[Path] = (),
    ) -> None:
        """Start a sandbox in this process, or use the one at ``base_url``.

        Scenarios in ``scenario_folders`` can be used by name.

        Raises:
            SandboxNotFound: no sandbox answers at ``base_url``.
            Invalid: a file in a scenario folder is wrong.
        """
        self.in_process: Server | None = None
        self.base_url = base_url or ""
        self._control_token = control_token
        self._interceptions: Interceptions | None = None
        self._is_deaf = False
        if base_url is None:
            self.in_process = self._started(scenario_folders)
            self.base_url = self.in_process.url
        else:
            self.base_url = _checked(base_url)
        self._transport = self._made_transport()  # shared by all projects, to save connections

    def _started(self, scenario_folders: Sequence[Path]) -> "Server":
        with collecting_later(), LOADING:
            from payment_sandbox.serving.config import ServerConfig  # here, so that other suites load none
            from payment_sandbox.serving.listeners import Nowhere, OnFirstConnection
            from payment_sandbox.serving.server import build

        try:
            listener: OnFirstConnection | Nowhere = OnFirstConnection()
        except RuntimeError:  # pytest-socket and its like
            listener, self._is_deaf = Nowhere(), True
        try:
            server = build(
                ServerConfig(listener=listener, scenario_folders=scenario_folders, webhooks_stay_here=True)
            )
        except BaseException:
            listener.stop()
            raise
        server.start()
        return server

    def listen_again(self) -> None:
        """Listen, if sockets were forbidden when the server started and no longer are."""
        server = self.in_process
        if server is None or not self._is_deaf:
            return
        with LOADING:
            from payment_sandbox.serving.listeners import OnFirstConnection

        with suppress(RuntimeError):
            server.listen(OnFirstConnection())
            self.base_url, self._is_deaf = server.url, False

    def session_for(self, api_key: str) -> "requests.Session":
        """Create a session with the key set; it uses no sockets if the server is in this process."""
        if self.in_process is None:
            return direct_session(api_key)
        with LOADING:
            from payment_sandbox.testing.clients.with_requests import session

        return session(self.in_process, api_key)

    def client_for(self, api_key: str) -> SandboxClient:
        """Create a client of a project; it uses no sockets if the server is in this process."""
        return SandboxClient(
            self.base_url, api_key, session=self._transport, control_token=self._control_token
        )

    def project_of(self, api_key: str) -> "Project | None":
        """The project of a key, if the server is in this process."""
        return self.in_process.registry.find(api_key) if self.in_process is not None else None

    @property
    def interceptions(self) -> "Interceptions":
        """The providers whose requests come to this server.

        Raises:
            RuntimeError: the server runs in another process.
        """
        if self.in_process is None:
            raise RuntimeError("intercept needs the sandbox in this process; unset SANDBOX_URL")
        if self._interceptions is None:
            with LOADING:
                from payment_sandbox.testing.clients.intercepting import Interceptions

            self._interceptions = Interceptions(self.in_process)
        return self._interceptions

    def _made_transport(self) -> Transport:
        if self.in_process is None:
            return direct_session()
        with LOADING:
            from payment_sandbox.testing.clients.with_requests import DirectSession

        return DirectSession(self.in_process)

    def stop(self) -> None:
        """Stop the server if it runs in this process."""
        if self._interceptions is not None:
            self._interceptions.stop_all()
        self._transport.close()
        if self.in_process is not None:
            self.in_process.stop()


@contextmanager
def collecting_later() -> Iterator[None]:
    """Collect no garbage while much is loaded: it takes time, and finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _checked(base_url: str) -> str:
    """The address of a sandbox that answers, without its last slash."""
    url = base_url.rstrip("/")
    if "://" not in url:
        raise SandboxNotFound(f"SANDBOX_URL is {base_url!r}, without a scheme: use http://{url}")
    with direct_session() as session:
        try:
            answer = session.get(f"{url}/health/", timeout=HEALTH_TIMEOUT_SECONDS)
        except (OSError, ValueError) as error:
            raise SandboxNotFound(
                f"no sandbox answers at SANDBOX_URL {url} ({trouble(error, url)}); "
                "start one with payment-sandbox serve, or unset SANDBOX_URL"
            ) from None
    try:
        is_sandbox = answer.json()["status"] == "ok" and "version" in answer.json()
    except (ValueError, KeyError, TypeError):
        is_sandbox = False
    if not is_sandbox:
        raise SandboxNotFound(f"what answers at SANDBOX_URL {url} is not a payment sandbox")
    return url
