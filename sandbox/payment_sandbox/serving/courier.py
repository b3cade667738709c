"""The courier: the receivers in reach of the server, and a thread per outbox that is not empty."""

from collections.abc import Callable, Collection
from contextvars import copy_context
from functools import partial
from ssl import SSLContext
from typing import NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.delivery.receivers import (
    DeliveryOutcome,
    Destination,
    PreparedAttempt,
    ProcessReceiver,
    Receiver,
)
from payment_sandbox.orders.webhooks import NOT_DELIVERED_TO, NOT_SENT_IN_TESTS, Reply, Send
from payment_sandbox.projects.caller import caller
from payment_sandbox.scenarios.effects import Together
from payment_sandbox.serving.binding import is_local
from payment_sandbox.serving.posting import Posting, post_over_network
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.threads import Threads

Run = Callable[[Callable[[], None]], object]


class Courier:
    """Delivers the webhooks of all projects, with a thread for each non-empty outbox."""

    def __init__(
        self,
        *,
        trusted: SSLContext | None = None,
        local_only: bool = False,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Create a courier; ``trusted`` adds to the certificates that the system trusts.

        With ``local_only``, webhooks go only to this machine and to hosts that a project allows;
        ``allowed_hosts`` are the only hosts on the network.
        """
        self._local_only = local_only
        self.allowed_hosts = tuple(map(normal_host, allowed_hosts))
        self._threads = Threads("courier")
        self.run = self._threads.run
        self._network = _HttpAddress(self.run, partial(post_over_network, trusted=trusted))

    def receiver(self, destination: Destination, url: str) -> Receiver:
        """Return the receiver at an address: the application in this process, or a server on the network."""
        host = urlsplit(url).hostname or ""
        if destination.receiver is not None and (destination.hosts is None or host in destination.hosts):
            application = destination.receiver
            return _ApplicationInProcess(self.run, application, application, destination.on_waiting_thread)
        if self._local_only and not is_local(host) and host not in destination.allowed:
            advice = "deliver_to(app) delivers them to the shop, and "
            return _Nobody(
                f"{NOT_SENT_IN_TESTS}; {advice}deliver_over_network(hosts=[{host!r}]) allows that host"
            )
        if self.allowed_hosts and normal_host(host) not in self.allowed_hosts:
            advice = f"to allow {host}, add serve --deliver-to {host}"
            return _Nobody(f"{NOT_DELIVERED_TO} {', '.join(self.allowed_hosts)}; {advice}")
        return self._network

    def stop(self) -> None:
        """Accept no more work; deliveries in flight are abandoned with the process."""
        self._threads.stop()


class _Nobody(NamedTuple):
    """No receiver, for a reason."""

    reason: str

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Return the reason as the error of each copy."""
        return [DeliveryOutcome(Reply(0.0, error=self.reason), attempt.real_at)] * attempt.effect.copies


class _HttpAddress(NamedTuple):
    """Servers on the network; all copies of a webhook are sent at the same time."""

    run: Run
    send: Send
    application: ProcessReceiver | None = None
    on_waiting_thread: bool = False

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send all copies on other threads, so that the time limit holds however the receiver behaves."""
        postings = [self._start(attempt) for _ in range(attempt.effect.copies)]
        return [DeliveryOutcome(posting.wait(), attempt.real_at) for posting in postings]

    def _start(self, attempt: PreparedAttempt, *, on_this_thread: bool = False) -> Posting:
        posting = Posting(attempt.request, self.send, attempt.timeout_seconds, self.application)
        if on_this_thread:
            posting.run_on_waiting_thread()
        else:  # with this context, so that the thread gets the event loop of a test
            self.run(partial(copy_context().run, posting.run))
        return posting


class _ApplicationInProcess(_HttpAddress):
    """A merchant's application in this process, by default on the thread that waits for the webhooks."""

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Send the copies one after the other, unless a fault sends them together."""
        if isinstance(attempt.effect, Together):
            return super().post(attempt)
        on_this_thread = self.on_waiting_thread and caller().waiting_thread() is not None
        outcomes: list[DeliveryOutcome] = []
        for _ in range(attempt.effect.copies):
            sent_at = wall_now() if outcomes else attempt.real_at
            reply = self._start(attempt, on_this_thread=on_this_thread).wait()
            outcomes.append(DeliveryOutcome(reply, sent_at))
        return outcomes


def normal_host(name: str) -> str:
    """Normalize a host name: lower case, without a trailing dot or the brackets of an IPv6 address."""
    return name.lower().rstrip(".").strip("[]")
