"""The ``payment_sandbox`` fixture: a project per test, with shortcuts for common steps."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from payment_sandbox.client import answers
from payment_sandbox.client.clock import SandboxClock
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.testing.access import Access
from payment_sandbox.testing.shop import ShopInProcess

if TYPE_CHECKING:
    from urllib3 import PoolManager

    from payment_sandbox.client.review import Review
    from payment_sandbox.testing.aio import AsyncPaymentSandbox
    from payment_sandbox.testing.clients.providers import Route


class PaymentSandbox(ShopInProcess):
    """One project: its address and key for the code under test, and everything to drive it."""

    def __init__(self, server: Access, api_key: str, project_id: str) -> None:
        self.server = server
        self.base_url = server.base_url
        """The address of both APIs, for the code under test, without a final slash."""
        self.api_key = api_key
        """The key of this project, for the code under test: the user name of HTTP Basic."""
        self.project_id = project_id
        self.session = server.session_for(self.api_key)
        """A ``requests.Session`` for the code under test, with the key set; it needs no socket."""
        self.client = server.client_for(self.api_key)
        """A ``SandboxClient``: the whole control API."""
        self.clock: SandboxClock = self.client.clock
        """The project's clock: ``advance``, ``now``, ``freeze``, ``run``, ``set``."""
        self._on_deed: Callable[[], None] = lambda: None  # a rehearsal looks at the books then
        self._intercepted: list[Route] = []
        self._rejected_before = 0

    def __enter__(self) -> "PaymentSandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # How the shop reaches the sandbox

    @cached_property
    def httpx_transport(self) -> Any:
        """A transport for ``Client`` and ``AsyncClient`` of httpx and httpx2; it needs no socket."""
        from payment_sandbox.testing.clients.with_httpx import HttpxTransport

        return HttpxTransport(self.server.in_process)

    @cached_property
    def pool_manager(self) -> "PoolManager":
        """A ``urllib3.PoolManager``; its requests to the sandbox need no socket."""
        from payment_sandbox.testing.clients.with_urllib3 import pool_manager

        return pool_manager(self.server.in_process)

    def intercept(self, *provider_urls: str) -> None:
        """Let requests to these addresses come to the sandbox instead, until the project ends.

        For a shop whose client has the provider's address built in, such as
        ``intercept("https://api.provider.example")``. What requests, httpx, httpx2, urllib3 and http.client
        would send there is answered here, without a socket and without TLS; the key in the request selects
        the project.

        Raises:
            ValueError: an address is not an HTTP address.
            RuntimeError: the server runs in another process.
        """
        for url in provider_urls:
            interceptions = self.server.interceptions
            if not self._intercepted:
                self._rejected_before = interceptions.rejections.count
            self._intercepted.append(interceptions.add(url))

    # What happens

    def scenario(self, scenario: str | Path | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario: a name, a file (a ``Path``, or text that ends in .yaml), or a whole document.

        Raises:
            SandboxError: there is no such scenario, or it is wrong; it lists every mistake.
        """
        return self.client.scenario(scenario)

    def act(self, order_id: str, actor: str = "customer", action: str = "pay", **how: Any) -> answers.Order:
        """Perform an action, and return the order; by default, the customer pays.

        For example ``act(order_id, "customer", "choose", payment_method="credit-card")`` or
        ``act(order_id, "bank", "credit", amount=500)``; amounts are in cents.

        Raises:
            SandboxError: the state refuses it; ``allowed`` lists what is possible now.
        """
        try:
            return self.client.act(order_id, actor, action, **how)
        finally:
            self._on_deed()

    def play(self, order_id: str, actor: str = "customer", action: str = "pay", **how: Any) -> answers.Order:
        """Let the scenario's customer or bank act on an order; act like this only if it leaves that to you.

        A test that plays orders has another outcome under each scenario; one that acts always has the same.
        """
        try:
            return self.client.play(order_id, actor, action, **how)
        finally:
            self._on_deed()

    @property
    def webhooks(self) -> list[answers.Webhook]:
        """The webhooks with every attempt, newest last."""
        return self.client.webhooks()

    def wait_for(
        self, order_id: str, status: str, timeout_seconds: float | timedelta = 10.0
    ) -> answers.Waited:
        """Wait, in real time, until an order has a status.

        Raises:
            SandboxError: 408, it still has another one after the time limit.
        """
        return self.client.wait(order_id=order_id, status=status, timeout_seconds=timeout_seconds)

    @cached_property
    def aio(self) -> "AsyncPaymentSandbox":
        """The same for ``async`` tests, on asyncio and trio: ``await payment_sandbox.aio.act(order_id)``."""
        from payment_sandbox.testing.aio import AsyncPaymentSandbox

        return AsyncPaymentSandbox(self)

    # What happened

    def review(self) -> "Review":
        """List the mistakes of the integration under test: a list, empty for a correct integration.

        ``review().assert_clean()`` fails with all of them.
        """
        from payment_sandbox.client.review import review

        return review(self.client)

    def timeline(self) -> str:
        """Return what happened, line by line, for a report."""
        from payment_sandbox.client.history import timeline

        told = list(timeline(self.client))
        if self._intercepted:
            told += self.server.interceptions.rejections.since(self._rejected_before)
        return "\n".join(told)

    def close(self) -> None:
        """Delete the project; nothing that is still due happens."""
        for route in self._intercepted:
            self.server.interceptions.remove(route)
        self._intercepted.clear()
        server, project = self.server.in_process, self._project
        if server is not None and project is not None:
            server.registry.delete(project)
        elif server is None:
            with suppress(SandboxError):  # the test may have deleted it
                self.client.delete_project()
        self._close_receiver()
        self._close_browsers()
        self.session.close()
        if "httpx_transport" in self.__dict__:  # it was used
            self.httpx_transport.close()
        if "pool_manager" in self.__dict__:
            self.pool_manager.clear()
