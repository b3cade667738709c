"""What ``payment_sandbox`` does with a shop in the process of the test: webhooks, jobs, time, customers."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.testing.access import Access

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.projects.project import Project
    from payment_sandbox.testing.jobs import Work
    from payment_sandbox.testing.shops.browser import Browser
    from payment_sandbox.testing.shops.receiving import Receiver

SHOP_URL: Final = "http://testserver/webhook"
"""Where webhooks go without a ``webhook_url``; test clients and Django's test settings know this host."""

WAITING: Final = "waiting"
OWN: Final = "own"


class ShopInProcess:
    """What ``PaymentSandbox`` offers for a shop in the process of the test."""

    server: Access
    api_key: str
    client: "SandboxClient"

    _receiver: "Receiver | None" = None
    _browsers: "Sequence[Browser]" = ()
    _url_before: str | None = None  # where webhooks went before deliver_to

    # Where webhooks go

    def deliver_to(
        self,
        app: Any,
        webhook_url: str = SHOP_URL,
        *,
        host: str | None = None,
        thread: str = WAITING,
        hosts: Collection[str] | None = None,
    ) -> None:
        """Deliver webhooks straight into the merchant's own WSGI or ASGI application, without a socket.

        ``webhook_url`` is where the application expects them; an order's own takes precedence. ``host`` is
        the ``Host`` header of every webhook; by default it is that of the address. With ``hosts``, only
        webhooks to these hosts, such as ``["shop.example"]``, go to the application, and all others over the
        network.

        By default the application runs on the thread whose call led to the webhook, so that it shares the
        test's database connection and transaction. An ASGI application, and any application in an ``async``
        test, runs on the event loop that awaits the call. A handler that takes over five seconds counts as
        unanswered. The test goes on once it returns; pytest-timeout ends tests that hang. With
        ``thread="own"`` it runs on another thread, and the test goes on after five seconds.

        Raises:
            TypeError: ``app`` is something else.
            ValueError: ``webhook_url`` is not an HTTP URL, or ``host``, ``hosts`` or ``thread`` is
                something else.
            RuntimeError: the server runs in another process.
        """
        if thread not in (WAITING, OWN):
            raise ValueError(f"thread is {thread!r}, but must be {WAITING!r} or {OWN!r}")
        project, server = self._in_process("deliver_to"), self.server.in_process
        assert server is not None, "it has the project"
        from payment_sandbox.testing.shops.receiving import Receiver

        is_here = thread == WAITING and not project.epoch.stage.is_elsewhere
        receiver = Receiver(app, host, is_here=is_here)
        self._change_webhook_url(project, webhook_url)
        self._close_receiver()
        self._receiver = receiver
        server.services.courier.deliver_to(project.project_id, receiver, here=is_here, hosts=_hosts(hosts))

    def _change_webhook_url(self, project: "Project", webhook_url: str) -> None:
        before = project.settings.webhook_url
        try:
            project.change_settings({"webhook_url": webhook_url})
        except Invalid as invalid:
            raise ValueError(str(invalid)) from None
        if self._receiver is None:
            self._url_before = before

    @property
    def application(self) -> Any:
        """The application that gets the webhooks, if there is one."""
        return self._receiver.application if self._receiver is not None else None

    def deliver_over_network(self) -> None:
        """Send webhooks over the network again, to the address that the project had before ``deliver_to``."""
        project, server = self._project, self.server.in_process
        if project is None or server is None or self._receiver is None:
            return
        server.services.courier.deliver_to(project.project_id, None)
        project.change_settings({"webhook_url": self._url_before})
        self._close_receiver()

    # The shop's own time

    def every(self, period: str | timedelta, job: "Work", name: str | None = None) -> None:
        """Run a job of the shop, such as one that reads open orders, at intervals of sandbox time.

        The agenda has it, and it runs while the clock is advanced, each time at its own time. One that raises
        is reported in the timeline and as a warning, and runs again. A coroutine function runs on the event
        loop of an ``async`` test. A reset of the project ends its jobs.

        Raises:
            ValueError: ``period`` is not a period, such as ``PT10M`` or a ``timedelta``.
            RuntimeError: the server runs in another process.
        """
        from payment_sandbox.projects.jobs import Job
        from payment_sandbox.projects.stage import AS_IT_IS
        from payment_sandbox.testing.jobs import period_of, runner

        named = str(name or getattr(job, "__name__", type(job).__name__))
        interval, epoch = period_of(period), self._in_process("every").epoch
        run = runner(named, job, lambda: epoch.stage is not AS_IT_IS)
        epoch.jobs.add(Job(named, interval, interval.after(epoch.now()), run))

    def wall_clock(self) -> "AbstractContextManager[None]":
        """Let ``datetime.now()``, ``time.time()`` and the like tell sandbox time, for a shop that reads them.

        It is a context manager, and needs freezegun. While it is open, every step of the project's clock
        moves them along: a job or a webhook handler sees its own time.

        Raises:
            RuntimeError: freezegun is not installed, or the server runs in another process.
        """
        from payment_sandbox.testing.wall_clock import following

        return following(self._in_process("wall_clock"))

    def browser(self, app: Any) -> "Browser":
        """A customer's browser in the shop: it posts, comes back from the payment page, and clicks twice.

        ``app`` is the merchant's own WSGI or ASGI application. The timeline shows what it asks for.

        Raises:
            TypeError: ``app`` is something else.
            RuntimeError: the server runs in another process.
        """
        from payment_sandbox.testing.shops.browser import Browser

        self._browsers = [*self._browsers, Browser(app, self._in_process("browser"))]
        return self._browsers[-1]

    def _in_process(self, what: str) -> "Project":
        if self._project is None:
            raise RuntimeError(f"{what} needs the sandbox in this process; unset SANDBOX_URL")
        return self._project

    def _close_browsers(self) -> None:
        for browser in self._browsers:
            browser.close()
        self._browsers = ()

    def _close_receiver(self) -> None:
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    @property
    def _project(self) -> "Project | None":
        """The project itself, if the server is in this process."""
        return self.server.project_of(self.api_key)


def _hosts(hosts: Collection[str] | None) -> frozenset[str] | None:
    if isinstance(hosts, str):
        raise ValueError(f'hosts is {hosts!r}, but must be a list of host names, such as ["shop.example"]')
    return None if hosts is None else frozenset(host.lower() for host in hosts)
