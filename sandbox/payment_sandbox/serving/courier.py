"""The courier: the receivers in reach of the server, and a thread per outbox that is not empty."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from threading import Event
from typing import Final
from urllib.parse import urlsplit

from payment_sandbox.delivery.receivers import DeliveryOutcome, PreparedAttempt, Receiver
from payment_sandbox.orders.webhooks import NOT_DELIVERED_TO, NOT_SENT_IN_TESTS, Reply, Send
from payment_sandbox.projects.caller import as_waiting_thread, caller
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot
from payment_sandbox.scenarios.effects import Together
from payment_sandbox.serving.binding import is_local
from payment_sandbox.serving.posting import Posting, ProcessReceiver, post_over_network
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.sessions import Trust
from payment_sandbox.serving.threads import Threads


class Destination:
    """A project's receiver of webhooks in this process, and the allowed hosts on other machines."""

    receiver: ProcessReceiver | None = None
    hosts: frozenset[str] | None = None  # hosts served by the receiver; None: all hosts
    on_waiting_thread = False  # the receiver runs on the thread that waits for the webhooks
    allowed: frozenset[str] = frozenset()  # hosts on other machines


DESTINATION: Final = Slot(Destination)
Run = Callable[[Callable[[], None]], object]


class Courier:
    """Delivers the webhooks of all projects, with a thread for each non-empty outbox."""

    def __init__(
        self,
        *,
        trusted: Trust | None = None,
        local_only: bool = False,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Create a courier; ``trusted`` adds to the certificates that the system trusts.

        With ``local_only``, webhooks go only to this machine and to hosts that a project allows;
        ``allowed_hosts`` are the only hosts on the network.
        """
        self._ending = Event()
        self._local_only = local_only
        self.allowed_hosts = tuple(map(normal_host, allowed_hosts))
        self._post_over_network = partial(post_over_network, trusted=trusted)
        self._threads = Threads("courier")
        self.run = self._threads.run

    def deliver_to(
        self,
        project: Project,
        receiver: ProcessReceiver | None,
        *,
        on_waiting_thread: bool = False,
        hosts: frozenset[str] | None = None,
    ) -> None:
        """Deliver a project's webhooks to an application in this process; None switches back to the network.

        With ``on_waiting_thread``, the application runs on the thread that waits for the webhooks, if any.
        With ``hosts``, webhooks to other hosts go over the network.
        """
        destination = project.slots.of(DESTINATION)
        destination.receiver, destination.hosts = receiver, hosts
        destination.on_waiting_thread = on_waiting_thread

    def allow(self, project: Project, hosts: frozenset[str]) -> None:
        """Allow deliveries of a project's webhooks to these hosts on other machines."""
        project.slots.of(DESTINATION).allowed = hosts

    def receiver_of(self, project: Project) -> ProcessReceiver | None:
        """Return the in-process receiver of a project's webhooks, if any."""
        return project.slots.of(DESTINATION).receiver

    # The host of the projects

    def receiver(self, project: Project, url: str) -> Receiver:
        """Return the receiver at an address: the application in this process, or a server on the network."""
        destination, host = project.slots.of(DESTINATION), urlsplit(url).hostname or ""
        if destination.receiver is not None and (destination.hosts is None or host in destination.hosts):
            return _ApplicationInProcess(self.run, destination.receiver, destination.on_waiting_thread)
        if self._local_only and not is_local(host) and host not in destination.allowed:
            advice = "deliver_to(app) delivers them to the shop, and "
            return _Nobody(
                f"{NOT_SENT_IN_TESTS}; {advice}deliver_over_network(hosts=[{host!r}]) allows that host"
            )
        if self.allowed_hosts and normal_host(host) not in self.allowed_hosts:
            advice = f"to allow {host}, add serve --deliver-to {host}"
            return _Nobody(f"{NOT_DELIVERED_TO} {', '.join(self.allowed_hosts)}; {advice}")
        return _HttpAddress(self.run, self._post_over_network)

    def sends_on_waiting_thread(self, project: Project) -> bool:
        """Whether the thread that waits for a project's webhooks sends them."""
        return project.slots.of(DESTINATION).on_waiting_thread

    def pause(self, seconds: float) -> bool:
        """Wait in real time; return True once the server stops."""
        return self._ending.wait(seconds)

    @contextmanager
    def waiting(self, project: Project | None = None) -> Iterator[None]:
        """Defer deliveries to this thread within the context; at its end, hand the rest to other threads.

        If a job of the project makes the call, the advance on this thread delivers after the job.
        """
        if project is not None and project.epoch.jobs.running and caller().waiting_thread() is not None:
            yield
            return
        with as_waiting_thread() as waiting:
            try:
                yield
            finally:
                for outbox in waiting.outboxes:
                    outbox.start_thread()

    def stop(self) -> None:
        """Accept no more work; deliveries in flight are abandoned with the process."""
        self._ending.set()
        self._threads.stop()


class _Nobody:
    """No receiver, for a reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Return the reason as the error of each copy."""
        return [DeliveryOutcome(Reply(0.0, error=self._reason), attempt.real_at)] * attempt.effect.copies


class _HttpAddress:
    """A server on the network; all copies of a webhook are sent at the same time."""

    def __init__(self, run: Run, send: Send, application: ProcessReceiver | None = None) -> None:
        self._run = run
        self._send = send
        self._application = application

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send all copies on other threads, so that the time limit holds however the receiver behaves."""
        postings = [self._start(attempt) for _ in range(attempt.effect.copies)]
        return [DeliveryOutcome(posting.wait(), attempt.real_at) for posting in postings]

    def _start(self, attempt: PreparedAttempt, *, on_this_thread: bool = False) -> Posting:
        posting = Posting(attempt.request, self._send, attempt.timeout_seconds, self._application)
        if on_this_thread:
            posting.run_on_waiting_thread()
        else:  # with this context, so that the thread gets the event loop of a test
            self._run(partial(copy_context().run, posting.run))
        return posting


class _ApplicationInProcess(_HttpAddress):
    """A merchant's application in this process, by default on the thread that waits for the webhooks."""

    def __init__(self, run: Run, application: ProcessReceiver, on_waiting_thread: bool) -> None:
        super().__init__(run, application, application)
        self._on_waiting_thread = on_waiting_thread

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send the copies one after the other, unless a fault sends them together."""
        if isinstance(attempt.effect, Together):
            return super().post(attempt)
        on_this_thread = self._on_waiting_thread and caller().waiting_thread() is not None
        outcomes: list[DeliveryOutcome] = []
        for _ in range(attempt.effect.copies):
            sent_at = wall_now() if outcomes else attempt.real_at
            reply = self._start(attempt, on_this_thread=on_this_thread).wait()
            outcomes.append(DeliveryOutcome(reply, sent_at))
        return outcomes


def normal_host(name: str) -> str:
    """Normalize a host name: lower case, without a trailing dot or the brackets of an IPv6 address."""
    return name.lower().rstrip(".").strip("[]")
