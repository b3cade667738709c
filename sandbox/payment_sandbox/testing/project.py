"""The ``payment_sandbox`` fixture: a project per test, with shortcuts for common steps."""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.client import answers
from payment_sandbox.client.client import SandboxClient, SandboxClock, SandboxError
from payment_sandbox.client.transport import Transport
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.serving.sessions import direct_session

if TYPE_CHECKING:
    import requests
    from _typeshed.wsgi import WSGIApplication

    from payment_sandbox.client.review import Finding
    from payment_sandbox.projects.project import Project
    from payment_sandbox.serving.server import Server

SHOP_URL: Final = "http://shop.test/webhook"
CLOCK: Final = "frozen"
WAITING: Final = "waiting"
OWN: Final = "own"


class PaymentSandboxServer:
    """One sandbox for a whole test session: in this process, or the one at ``SANDBOX_URL``."""

    def __init__(self, base_url: str | None = None, control_token: str | None = None) -> None:
        self.in_process: Server | None = None
        self.base_url = base_url or ""
        self._control_token = control_token
        if base_url is None:
            from payment_sandbox.serving import server  # here, so that other suites do not load it

            self.in_process = server.Server()
            self.in_process.start()
            self.base_url = self.in_process.url
        self._transport = self._made_transport()  # shared by all projects, to save connections

    def project(self, settings: Mapping[str, Any]) -> "PaymentSandbox":
        """Create a project with a frozen clock.

        Raises:
            SandboxError: lists every invalid setting.
        """
        asked = {"clock": CLOCK, **settings}
        if self.in_process is not None:
            with suppress(Invalid):  # the API call then refuses it, as a server in another process would
                project, api_key = self.in_process.registry.create(asked)
                return PaymentSandbox(self, api_key, project.project_id)
        made = self.client_for("").call("POST", "/control/projects/", asked)
        return PaymentSandbox(self, made["api_key"], made["project_id"])

    def session_for(self, api_key: str) -> "requests.Session":
        """Create a session with the key set; it uses no sockets if the server is in this process."""
        if self.in_process is None:
            return direct_session(api_key)
        from payment_sandbox.testing.in_process import session

        return session(self.in_process, api_key)

    def client_for(self, api_key: str) -> SandboxClient:
        """Create a client of a project; it uses no sockets if the server is in this process."""
        return SandboxClient(
            self.base_url, api_key, session=self._transport, control_token=self._control_token
        )

    def _made_transport(self) -> Transport:
        if self.in_process is None:
            return direct_session()
        from payment_sandbox.testing.in_process import DirectSession

        return DirectSession(self.in_process)

    def stop(self) -> None:
        """Stop the server if it runs in this process."""
        self._transport.close()
        if self.in_process is not None:
            self.in_process.stop()


class PaymentSandbox:
    """One project: its address and key for the code under test, and everything to drive it."""

    def __init__(self, server: PaymentSandboxServer, api_key: str, project_id: str) -> None:
        self.server = server
        self.base_url = server.base_url
        self.api_key = api_key
        self.project_id = project_id
        self.session = server.session_for(self.api_key)
        """A session for the code under test; it uses no sockets if the server is in this process."""
        self.client = server.client_for(self.api_key)
        self.clock: SandboxClock = self.client.clock

    def scenario(self, scenario: str | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario by name, or to a whole document."""
        return self.client.scenario(scenario)

    def act(self, order_id: str, actor: str = "customer", action: str = "pay", **how: Any) -> answers.Order:
        """Perform an action; by default, the customer pays."""
        return self.client.act(order_id, actor, action, **how)

    @property
    def webhooks(self) -> list[answers.Webhook]:
        """List the webhooks with every attempt."""
        return self.client.webhooks()

    def wait_for(self, order_id: str, status: str, timeout_seconds: float = 10.0) -> answers.Waited:
        """Wait until an order has a status."""
        return self.client.wait(order_id=order_id, status=status, timeout_seconds=timeout_seconds)

    def deliver_to(
        self, wsgi_app: "WSGIApplication", webhook_url: str = SHOP_URL, *, thread: str = WAITING
    ) -> None:
        """Deliver webhooks straight into the merchant's own WSGI application, without a socket.

        ``webhook_url`` is the application's address; an order's own ``webhook_url`` takes precedence.
        By default the application runs on the thread whose call led to the webhook, so that it shares the
        test's database connection; its time limit then applies once it has answered. With ``thread="own"``
        it runs on another thread and is given up after the time limit.

        Raises:
            RuntimeError: the server runs in another process.
            ValueError: ``webhook_url`` is not an HTTP URL, or ``thread`` is something else.
        """
        if thread not in (WAITING, OWN):
            raise ValueError(f"thread is {thread!r}, but must be {WAITING!r} or {OWN!r}")
        project, server = self._project, self.server.in_process
        if project is None or server is None:
            raise RuntimeError("deliver_to needs the sandbox in this process; unset SANDBOX_URL")
        from payment_sandbox.testing.merchant_app import Receiver

        try:
            project.change_settings({"webhook_url": webhook_url})
        except Invalid as invalid:
            raise ValueError(str(invalid)) from None
        receiver = Receiver(wsgi_app)
        server.services.courier.deliver_to(project.project_id, receiver, here=thread == WAITING)

    def review(self) -> "list[Finding]":
        """List the mistakes of the integration under test; empty for a correct one."""
        from payment_sandbox.client.review import review

        return review(self.client)

    def timeline(self) -> str:
        """Return what happened, line by line, for a report."""
        from payment_sandbox.client.history import timeline

        return "\n".join(timeline(self.client))

    def close(self) -> None:
        """Delete the project; nothing that is still due happens."""
        server, project = self.server.in_process, self._project
        if server is not None and project is not None:
            server.registry.delete(project)
        elif server is None:
            with suppress(SandboxError):  # the test may have deleted it
                self.client.delete_project()
        self.session.close()

    @property
    def _project(self) -> "Project | None":
        """The project itself, if the server is in this process."""
        server = self.server.in_process
        return server.registry.find(self.api_key) if server is not None else None
