"""The ``payment_sandbox`` fixture: a project per test, with shortcuts for common steps."""

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cached_property
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, TypeVar

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.clock import SandboxClock
from payment_sandbox.client.errors import SandboxError, ends_at_caller
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.loading import LOADING
from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.testing.access import Access
from payment_sandbox.testing.aio import AsyncClock, awaited, run_blocking
from payment_sandbox.testing.calling import CALLING_LOOP
from payment_sandbox.web.answers import records as answers

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from urllib3 import PoolManager

    from payment_sandbox.client.history import Review
    from payment_sandbox.projects.project import Project
    from payment_sandbox.testing.clients.intercepting import Route
    from payment_sandbox.testing.shops.browser import Browser
    from payment_sandbox.testing.shops.receiving import Receiver

__tracebackhide__ = ends_at_caller

SHOP_URL: Final = "http://testserver/webhook"
"""Where webhooks go without a ``webhook_url``; test clients and Django's test settings know this host."""

WAITING: Final = "waiting"
Thread = Literal["waiting", "own"]
OWN: Final = "own"
Result = TypeVar("Result")
Given = ParamSpec("Given")


class ShopInProcess:
    """What ``PaymentSandbox`` offers for a shop in the process of the test."""

    server: Access
    api_key: str
    client: SandboxClient

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
        thread: Thread = WAITING,
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
            ValueError: ``webhook_url`` is not an HTTP URL, or another argument is something else.
            RuntimeError: the server runs in another process.
        """
        if thread not in (WAITING, OWN):
            raise ValueError(f"thread is {thread!r}, but must be {WAITING!r} or {OWN!r}")
        project, server = self._in_process("deliver_to"), self.server.in_process
        assert server is not None, "it has the project"
        with LOADING:
            from payment_sandbox.testing.shops.receiving import Receiver

        is_here = thread == WAITING and not project.epoch.rehearsal.is_elsewhere
        receiver = Receiver(app, host, is_here=is_here)
        self._change_webhook_url(project, webhook_url)
        self._close_receiver()
        self._receiver = receiver
        server.services.courier.deliver_to(project, receiver, here=is_here, hosts=_hosts(hosts))

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

    def deliver_over_network(self, hosts: Collection[str] = ()) -> None:
        """Send webhooks over the network again, to the address that the project had before ``deliver_to``.

        They stay on this machine; ``hosts`` are others to which they may go.
        """
        project, server = self._project, self.server.in_process
        if project is None or server is None:
            return
        server.services.courier.allow(project, _hosts(hosts) or frozenset())
        if self._receiver is None:
            return
        server.services.courier.deliver_to(project, None)
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
        with LOADING:
            from payment_sandbox.projects.jobs import Job
            from payment_sandbox.projects.rehearsal import NO_REHEARSAL

        named = str(name or getattr(job, "__name__", type(job).__name__))
        interval, epoch = period_of(period), self._in_process("every").epoch
        run = runner(named, job, lambda: epoch.rehearsal is not NO_REHEARSAL)
        epoch.jobs.add(Job(named, interval, interval.after(epoch.now()), run))

    def wall_clock(self) -> "AbstractContextManager[None]":
        """Let ``datetime.now()``, ``time.time()`` and the like tell sandbox time, for a shop that reads them.

        It is a context manager, and needs freezegun. While it is open, every step of the project's clock
        moves them along: a job or a webhook handler sees its own time.

        Raises:
            RuntimeError: freezegun is not installed, or the server runs in another process.
        """

        return following(self._in_process("wall_clock"))

    def browser(self, app: Any) -> "Browser":
        """A customer's browser in the shop: it posts, comes back from the payment page, and clicks twice.

        ``app`` is the merchant's own WSGI or ASGI application. The timeline shows what it asks for.

        Raises:
            TypeError: ``app`` is something else.
            RuntimeError: the server runs in another process.
        """
        with LOADING:
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
        self._on_action: Callable[[], None] = lambda: None  # a rehearsal looks at the books then
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
        with LOADING:
            from payment_sandbox.testing.clients.with_httpx import HttpxTransport

        return HttpxTransport(self.server.in_process)

    @cached_property
    def pool_manager(self) -> "PoolManager":
        """A ``urllib3.PoolManager``; its requests to the sandbox need no socket."""
        with LOADING:
            from payment_sandbox.testing.clients.with_urllib3 import pool_manager

        return pool_manager(self.server.in_process)

    def intercept(self, *provider_urls: str, key: str | None = None) -> None:
        """Let requests to these addresses come to the sandbox instead, until the project ends.

        For a shop whose client has the provider's address built in, such as
        ``intercept("https://api.provider.example")``. What requests, httpx, httpx2, urllib3 and http.client
        would send there is answered here, without a socket and without TLS; the key in the request selects
        the project. A shop that has a fixed ``key`` built in comes to this project with it.

        Raises:
            ValueError: an address is not an HTTP address.
            RuntimeError: the server runs in another process.
        """
        for url in provider_urls:
            interceptions = self.server.interceptions
            if not self._intercepted:
                self._rejected_before = interceptions.rejections.count
            self._intercepted.append(interceptions.add(url, {key: self.api_key} if key else None))

    # What happens

    def scenario(self, scenario: str | Path | Mapping[str, Any]) -> answers.Scenario:
        """Switch to a scenario: a name, a file (a ``Path``, or text that ends in .yaml), or a whole document.

        Raises:
            SandboxError: there is no such scenario, or it is wrong; it lists every mistake.
        """
        return self.client.scenario(scenario)

    def act(
        self, /, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **how: Any
    ) -> answers.Order:
        """Perform an action, and return the order; by default, the customer pays.

        For example ``act(order_id, "customer", "choose", payment_method="credit-card")`` or
        ``act(order_id, "bank", "credit", amount=500)``; amounts are in cents.

        Raises:
            SandboxError: the state refuses it; ``allowed`` lists what is possible now.
        """
        try:
            return self.client.act(order_id, actor, action, **how)
        finally:
            self._on_action()

    def play(
        self, /, order_id: str, actor: Actor = "customer", action: ActionName = "pay", **how: Any
    ) -> answers.Order:
        """Let the scenario's customer or bank act on an order; act like this only if it leaves that to you.

        A test that plays orders has another outcome under each scenario; one that acts always has the same.
        """
        try:
            return self.client.play(order_id, actor, action, **how)
        finally:
            self._on_action()

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
        return AsyncPaymentSandbox(self)

    # What happened

    def review(self) -> "Review":
        """List the mistakes of the integration under test: a list, empty for a correct integration.

        ``review().assert_clean()`` fails with all of them.
        """
        with LOADING:
            from payment_sandbox.client.history import review

        return review(self.client)

    def timeline(self) -> str:
        """Return what happened, line by line, for a report."""
        entries = [self.client.report()]
        if self._intercepted:
            entries += self.server.interceptions.rejections.since(self._rejected_before)
        return "\n".join(entries)

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


class AsyncPaymentSandbox:
    """What ``PaymentSandbox`` does, awaited; works with pytest-asyncio, anyio and trio."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        self._sandbox, self._client = sandbox, sandbox.client
        self.clock = AsyncClock(sandbox.clock)
        """The project's clock: ``await payment_sandbox.aio.clock.advance("PT30M")``."""

    async def run(
        self, call: Callable[Given, Result], /, *given: Given.args, **options: Given.kwargs
    ) -> Result:
        """Run any blocking call, such as one of ``payment_sandbox.client``, while the loop goes on."""
        return await run_blocking(call, *given, **options)

    act = awaited(PaymentSandbox.act, "_sandbox")
    play = awaited(PaymentSandbox.play, "_sandbox")
    wait_for = awaited(PaymentSandbox.wait_for, "_sandbox")
    wait = awaited(SandboxClient.wait, "_client")
    scenario = awaited(PaymentSandbox.scenario, "_sandbox")
    order = awaited(SandboxClient.order, "_client")
    webhooks = awaited(SandboxClient.webhooks, "_client")
    review = awaited(PaymentSandbox.review, "_sandbox")
    timeline = awaited(PaymentSandbox.timeline, "_sandbox")


JOB_SECONDS_MAX: Final = 30.0

Work = Callable[[], Any]


class PaymentJobWarning(UserWarning):
    """A job of the shop raised an exception."""


def period_of(period: str | timedelta) -> Period:
    """The interval between two runs.

    Raises:
        ValueError: it is no period, or it is zero.
    """
    try:
        parsed = Period(str(period), 0, period) if isinstance(period, timedelta) else Period.parse(period)
    except (PeriodError, TypeError, AttributeError) as error:
        raise ValueError(f"every takes a timedelta, or a period such as PT10M; not {period!r}") from error
    if parsed.is_zero or parsed.rest < timedelta():
        raise ValueError(f"every takes a period that is longer than {period!r}")
    return parsed


def runner(name: str, work: Work, is_rehearsed: Callable[[], bool]) -> Callable[[], str | None]:
    """A function that runs the job once, on the test's event loop if it has one, and says why it failed.

    In a rehearsal, where jobs may fail, it gives no warning.
    """

    def run() -> str | None:
        try:
            _run(work)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not is_rehearsed():
                warnings.warn(PaymentJobWarning(f"the shop's job {name} failed: {problem}"), stacklevel=2)
            return problem
        return None

    return run


def _run(work: Work) -> None:
    loop = CALLING_LOOP.get()
    if not iscoroutinefunction(work):
        if loop is None:
            work()
        else:
            loop.call(work)
    elif loop is not None:
        loop.run(work, JOB_SECONDS_MAX)
    else:
        with LOADING:
            from payment_sandbox.testing.loops import OwnLoop  # here, because few suites have a loop

        own = OwnLoop()
        try:
            own.run(work, JOB_SECONDS_MAX)
        finally:
            own.close()


MISSING = "wall_clock needs freezegun: pip install freezegun"


@contextmanager
def following(project: "Project") -> Iterator[None]:
    """While inside, ``datetime.now()`` and the like tell this project's time.

    Raises:
        RuntimeError: freezegun is not installed.
    """
    try:
        with LOADING:
            from freezegun import freeze_time
    except ImportError:
        raise RuntimeError(MISSING) from None
    timeline, freezer = project.epoch.timeline, freeze_time(project.now(), real_asyncio=True)
    before, clock = timeline.on_move, freezer.start()

    timeline.on_move = clock.move_to
    try:
        yield
    finally:
        timeline.on_move = before
        freezer.stop()
