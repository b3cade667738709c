"""The ``payment_sandbox`` fixture: a project per test, with shortcuts for common steps."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from payment_sandbox.client import project_review
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError, ends_at_caller
from payment_sandbox.client.sandbox_clock import SandboxClock
from payment_sandbox.delivery.receivers import destination_of
from payment_sandbox.extensions import freezegun
from payment_sandbox.judge import review
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.orders.webhooks import LISTEN
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.unmatched import unmatched_rules
from payment_sandbox.testing import loops
from payment_sandbox.testing.access import SandboxAccess
from payment_sandbox.testing.aio import AsyncClock, run_blocking, to_coroutine
from payment_sandbox.testing.clients import intercepting, with_httpx
from payment_sandbox.testing.environments import outside_flask
from payment_sandbox.testing.loops import CALLING_LOOP
from payment_sandbox.testing.shops import browser, receiving
from payment_sandbox.web.answers import records as answers

__tracebackhide__ = ends_at_caller

SHOP_URL: Final = "http://testserver/webhook"
"""The default ``webhook_url``; test clients and Django's test settings accept this host."""

REJECTIONS_MAX: Final = 100  # in a report
WAITING_THREAD: Final = "waiting"
HandlerThread = Literal["waiting", "own"]
OWN_THREAD: Final = "own"
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


class ShopInProcess:
    """The part of ``PaymentSandbox`` for a shop that runs in the test's process."""

    server: SandboxAccess
    api_key: str
    client: SandboxClient

    _receiver: receiving.ShopReceiver | None = None
    _browsers: "Sequence[browser.Browser]" = ()
    _previous_url: str | None = None  # the previous webhook_url

    # Webhook delivery

    def deliver_to(
        self,
        app: Any,
        webhook_url: str = SHOP_URL,
        *,
        host: str | None = None,
        thread: HandlerThread = WAITING_THREAD,
        hosts: Collection[str] | None = None,
    ) -> None:
        """Deliver webhooks directly to the merchant's own WSGI or ASGI application, without a socket.

        ``webhook_url`` is the application's webhook address; an order's own ``webhook_url`` takes precedence.
        ``host`` is the ``Host`` header of every webhook, by default the host of the address. With ``hosts``,
        only webhooks to these hosts, such as ``["shop.example"]``, go to the application, and all other
        webhooks go over the network.

        By default the application runs on the thread whose call caused the webhook, so that it shares the
        test's database connection and transaction. An ASGI application, and any application in an ``async``
        test, runs on the event loop that awaits the call. A handler that needs more than five seconds counts
        as unanswered. The test continues once the handler returns; pytest-timeout ends a test that hangs.
        With ``thread="own"`` the handler runs on another thread, and the test continues after five seconds.

        Raises:
            TypeError: ``app`` is neither a WSGI nor an ASGI application.
            ValueError: ``webhook_url`` is not an HTTP URL, or another argument is invalid.
            RuntimeError: the server runs in another process.
        """
        if thread not in (WAITING_THREAD, OWN_THREAD):
            raise ValueError(f"thread is {thread!r}, but must be {WAITING_THREAD!r} or {OWN_THREAD!r}")
        project = self._in_process("deliver_to")
        waits = thread == WAITING_THREAD
        receiver = receiving.ShopReceiver(app, host, on_waiting_thread=waits, report=self.server.report)
        before = project.settings.webhook_url
        try:
            project.change_settings({"webhook_url": webhook_url})
        except Invalid as invalid:
            raise ValueError(str(invalid)) from None
        if self._receiver is None:
            self._previous_url = before
        self._close_receiver()
        self._receiver = receiver
        destination = destination_of(project)
        destination.receiver, destination.hosts = receiver, _host_set(hosts)
        destination.on_waiting_thread = waits

    @property
    def application(self) -> Any:
        """The application that receives the webhooks, if any."""
        return self._receiver.application if self._receiver is not None else None

    def deliver_over_network(self, hosts: Collection[str] = ()) -> None:
        """Send webhooks over the network again, to the address used before ``deliver_to``.

        Webhooks go only to this machine and to ``hosts``.
        """
        project = self._project
        if project is None:
            return
        destination = destination_of(project)
        destination.allowed = _host_set(hosts) or frozenset()
        if self._receiver is None:
            return
        destination.receiver, destination.on_waiting_thread = None, False
        project.change_settings({"webhook_url": self._previous_url})
        self._close_receiver()

    # The shop's jobs and time

    def every(self, period: str | timedelta, job: "Work", name: str | None = None) -> None:
        """Run a shop's job, such as a check on open orders, at intervals of sandbox time.

        The job is on the agenda, and advancing the clock runs it at each due time. An exception is
        reported in the timeline and as a warning, and the job runs again at the next interval. A coroutine
        function runs on the event loop of an ``async`` test. Resetting the project ends its jobs.

        Raises:
            ValueError: ``period`` is not a period, such as ``PT10M`` or a ``timedelta``.
            TypeError: ``job`` is not a function.
            RuntimeError: the server runs in another process.
        """
        if not callable(job):
            raise TypeError(f"every takes a function, such as shop.read_open_orders, not {job!r}")
        label = str(name or getattr(job, "__name__", type(job).__name__))
        try:
            interval = (
                Period(str(period), 0, period) if isinstance(period, timedelta) else Period.parse(period)
            )
        except (PeriodError, TypeError, AttributeError) as error:
            raise ValueError(f"every takes a timedelta or a period such as PT10M, not {period!r}") from error
        if interval.is_zero or interval.extra < timedelta():
            raise ValueError(f"every takes a positive period; not {period!r}")
        project = self._in_process("every")
        epoch = project.epoch

        def run() -> str | None:
            try:
                loop = CALLING_LOOP.get()
                if not iscoroutinefunction(job):
                    if loop is None:
                        job()
                    else:
                        loop.call(job)
                elif loop is not None:
                    loop.run(job, JOB_SECONDS_MAX)
                else:
                    own = loops.OwnLoop()
                    try:
                        own.run(job, JOB_SECONDS_MAX)
                    finally:
                        own.close()
            except Exception as error:
                problem = f"{type(error).__name__}: {error}{receiving.line_of_error(error)}"
                if not project.is_rehearsed:
                    warnings.warn(
                        PaymentJobWarning(f"the shop's job {label} failed: {problem}"), stacklevel=2
                    )
                return problem
            return None

        epoch.jobs.append(Job(label, interval, interval.after(epoch.now()), outside_flask(run)))

    @contextmanager
    def wall_clock(self) -> Iterator[None]:
        """Make ``datetime.now()``, ``time.time()`` and the like return sandbox time to the shop.

        Return a context manager, which needs freezegun. In the context, these functions follow every step of
        the project's clock, so that a job or a webhook handler sees its own due time.

        Raises:
            RuntimeError: freezegun is not installed, or the server runs in another process.
        """
        project = self._in_process("wall_clock")
        try:
            freeze_time = freezegun.freeze_time
        except ImportError:
            raise RuntimeError("wall_clock needs freezegun: pip install freezegun") from None
        timeline, freezer = project.epoch.timeline, freeze_time(project.now(), real_asyncio=True)
        before, clock = timeline.on_move, freezer.start()
        timeline.on_move = clock.move_to
        try:
            yield
        finally:
            timeline.on_move = before
            freezer.stop()

    def browser(self, app: Any) -> "browser.Browser":
        """Create a customer's browser, to submit forms, double-click, and return from the payment page.

        ``app`` is the merchant's own WSGI or ASGI application. The timeline shows the browser's requests.

        Raises:
            TypeError: ``app`` is neither a WSGI nor an ASGI application.
            RuntimeError: the server runs in another process.
        """
        self._browsers = [*self._browsers, browser.Browser(app, self._in_process("browser"))]
        return self._browsers[-1]

    def _in_process(self, feature: str) -> Project:
        project = self._project
        if project is None:
            raise RuntimeError(f"{feature} needs the sandbox in this process; unset SANDBOX_URL")
        return project

    def _close_receiver(self) -> None:
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    @property
    def _project(self) -> Project | None:
        return self.server.project_of(self.api_key)


def _host_set(hosts: Collection[str] | None) -> frozenset[str] | None:
    if isinstance(hosts, str):
        raise ValueError(f'hosts is {hosts!r}, but must be a list of host names, such as ["shop.example"]')
    return None if hosts is None else frozenset(host.lower() for host in hosts)


class PaymentSandbox(ShopInProcess):
    """One project: its address and key for the code under test, and methods to control it."""

    def __init__(self, server: SandboxAccess, api_key: str, project_id: str) -> None:
        self.server = server
        self.base_url = server.base_url
        """The address of both APIs, for the code under test, without a trailing slash."""
        self.api_key = api_key
        """The key of this project, for the code under test: the user name of HTTP Basic."""
        self.project_id = project_id
        self.session = server.session_for(self.api_key)
        """A ``requests.Session`` for the code under test, with the key set, without sockets."""
        self.client = server.client_for(self.api_key)
        """A ``SandboxClient`` for the whole control API."""
        self.clock: SandboxClock = self.client.clock
        """The project's clock: ``advance``, ``now``, ``freeze``, ``run``, ``set``."""
        self.is_kept = False
        """Whether ``close`` leaves the project on a running server for a day."""
        self._intercepted: list[intercepting.Route] = []
        self._rejected_before = 0

    def __enter__(self) -> "PaymentSandbox":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Clients for the shop

    @cached_property
    def httpx_transport(self) -> Any:
        """A transport for ``Client`` and ``AsyncClient`` in httpx and httpx2, without sockets."""
        return with_httpx.HttpxTransport(self.server.in_process)

    def intercept(self, *provider_urls: str, key: str | None = None) -> AbstractContextManager[object]:
        """Redirect requests for these addresses to the sandbox, until the project or a ``with`` block ends.

        This is for a shop with a hard-coded provider address: ``intercept("https://api.provider.example")``.
        The sandbox answers requests that requests, httpx, httpx2, urllib3 and http.client would send to the
        provider, without sockets or TLS; the API key in the request selects the project. ``key`` is the
        shop's hard-coded API key, if any, which then selects this project.

        All other clients fail when they resolve an address or connect to it, and so do all clients after the
        interception, until the session ends: a thread that outlives its test reaches no provider.

        Raises:
            ValueError: an address is not an HTTP address; then none of the addresses is intercepted.
            RuntimeError: the server runs in another process.
        """
        interceptions = self.server.interceptions
        if not self._intercepted:
            self._rejected_before = len(interceptions.rejections)
        interceptions.check(*provider_urls)
        with ExitStack() as undo:
            for url in provider_urls:
                route = interceptions.add(url, {key: self.api_key} if key else None)
                undo.callback(interceptions.remove, route)
                self._intercepted.append(route)
            return undo.pop_all()

    # Scenarios and actions

    def scenario(self, scenario: str | Path | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario: a name, a file (a ``Path``, or a string that ends in .yaml), or a document.

        Raises:
            SandboxError: the scenario is unknown or invalid; the error lists every mistake.
        """
        return self.client.scenario(scenario)

    def act(
        self, /, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **details: Any
    ) -> answers.Order:
        """Perform an action, and return the order; by default, the customer pays.

        For example ``act(order_id, "customer", "choose", payment_method="credit-card")`` or
        ``act(order_id, "bank", "credit", amount=500)``; amounts are in cents.

        Raises:
            SandboxError: the order's state forbids the action; ``allowed`` lists the possible actions.
        """
        return self.client.act(order_id, actor, action, **details)

    def play(
        self, /, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **details: Any
    ) -> answers.Order:
        """Run the scenario's next action on an order; if none is scheduled, perform the given action.

        With ``play``, the outcome of a test depends on the scenario; with ``act``, it is always the same.
        """
        return self.client.play(order_id, actor, action, **details)

    @property
    def webhooks(self) -> list[answers.Webhook]:
        """The webhooks with all their attempts, oldest first."""
        return self.client.webhooks()

    def wait_for(
        self, order_id: str, status: str, timeout_seconds: float | timedelta = 10.0
    ) -> answers.WaitResult:
        """Wait, in real time, until an order reaches a status.

        Raises:
            SandboxError: 408, the wait timed out.
        """
        return self.client.wait(order_id=order_id, status=status, timeout_seconds=timeout_seconds)

    @cached_property
    def aio(self) -> "AsyncPaymentSandbox":
        """The methods for ``async`` tests (asyncio and trio): ``await payment_sandbox.aio.act(order_id)``."""
        return AsyncPaymentSandbox(self)

    # Reports

    def review(self) -> project_review.Review:
        """Review the integration under test; return a list of mistakes, empty if it is correct.

        ``review().assert_clean()`` fails and lists all mistakes.
        """
        project = self._project
        findings = review(project.epoch) if project is not None else project_review.review(self.client)
        return project_review.Review(
            each._replace(advice=self._name_delivery(each.advice)) for each in findings
        )

    def unmatched(self) -> list[str]:
        """Return a sentence for each fault and scenario rule of this test that never matched.

        A fault for the second call is unmatched until that call. A scenario by name counts as a whole.
        """
        if (project := self._project) is not None:
            return unmatched_rules(project.epoch)
        return self.client.reviewed()["unmatched"]

    def _name_delivery(self, advice: str) -> str:
        """Add ``deliver_to`` to advice to serve the shop; it needs the sandbox in this process."""
        named = f"In a test, call payment_sandbox.deliver_to(app). Otherwise {LISTEN[0].lower()}{LISTEN[1:]}"
        return advice if self.server.in_process is None else advice.replace(LISTEN, named)

    def timeline(self) -> str:
        """Return the timeline as text, for a report."""
        entries = [self._name_delivery(self.client.report())]
        if self._intercepted:
            entries += self.server.interceptions.rejections[self._rejected_before :][-REJECTIONS_MAX:]
        host = urlsplit(self.base_url).hostname or ""
        if getproxies_environment().keys() - {"no"} and not proxy_bypass(host):
            entries.append(
                f"clients send calls to {host} to the proxy of the environment: add it to NO_PROXY"
            )
        return "\n".join(entries)

    def close(self) -> None:
        """Delete the project; pending events never run."""
        for route in self._intercepted:
            self.server.interceptions.remove(route)
        self._intercepted.clear()
        server, project = self.server.in_process, self._project
        if server is not None and project is not None:
            server.registry.delete(project)
        elif server is None:
            with suppress(SandboxError):  # the test may have deleted the project
                if self.is_kept:
                    self.client.patch_project({"expires_after": "P1D"})
                else:
                    self.client.delete_project()
        self._close_receiver()
        for each in self._browsers:
            each.close()
        self._browsers = ()
        self.session.close()
        if "httpx_transport" in self.__dict__:  # created on first use
            self.httpx_transport.close()


class AsyncPaymentSandbox:
    """The methods of ``PaymentSandbox`` as coroutines, for pytest-asyncio, anyio and trio."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        self._sandbox, self._client = sandbox, sandbox.client
        self.clock = AsyncClock(sandbox.clock)
        """The project's clock: ``await payment_sandbox.aio.clock.advance("PT30M")``."""

    async def run(
        self, call: Callable[Arguments, Result], /, *arguments: Arguments.args, **options: Arguments.kwargs
    ) -> Result:
        """Run any blocking call, such as a ``payment_sandbox.client`` method, while the loop continues."""
        return await run_blocking(call, *arguments, **options)

    act = to_coroutine(PaymentSandbox.act, "_sandbox")
    play = to_coroutine(PaymentSandbox.play, "_sandbox")
    wait_for = to_coroutine(PaymentSandbox.wait_for, "_sandbox")
    wait = to_coroutine(SandboxClient.wait, "_client")
    scenario = to_coroutine(PaymentSandbox.scenario, "_sandbox")
    order = to_coroutine(SandboxClient.order, "_client")
    webhooks = to_coroutine(SandboxClient.webhooks, "_client")
    review = to_coroutine(PaymentSandbox.review, "_sandbox")
    timeline = to_coroutine(PaymentSandbox.timeline, "_sandbox")


JOB_SECONDS_MAX: Final = 30.0

Work = Callable[[], Any]


class PaymentJobWarning(UserWarning):
    """A job of the shop raised an exception."""
