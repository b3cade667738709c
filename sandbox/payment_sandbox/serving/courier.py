"""The courier, which POSTs webhooks: a thread per outbox, so that a slow receiver delays no other project."""

import logging
from collections.abc import Callable, Collection
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import urlsplit

from payment_sandbox.operations.deliver_webhook import (
    PreparedAttempt,
    create_offers,
    prepare_attempt,
    record_attempt,
)
from payment_sandbox.orders.webhooks import (
    NOT_DELIVERED_TO,
    NOT_SENT_IN_TESTS,
    ReceiverAnswer,
    Reply,
    Send,
    Undelivered,
    WebhookRequest,
)
from payment_sandbox.projects.caller import as_waiting_thread, caller, during_delivery
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.outbox import OutboxEntry
from payment_sandbox.projects.project import Project, ProjectReset
from payment_sandbox.projects.relay import AttemptLabel
from payment_sandbox.projects.slots import Slot
from payment_sandbox.serving.binding import is_local
from payment_sandbox.serving.posting import Posting, post_over_network, stop_watching
from payment_sandbox.serving.sessions import Trust
from payment_sandbox.serving.threads import Threads
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.web.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterator


RETRY_SECONDS = 0.5

Retry = Callable[[Callable[[], Any]], Any]
"""Repeats work until its result is stored."""


def forward(
    project: Project, epoch: Epoch, prepared: PreparedAttempt, label: AttemptLabel, retry: Retry
) -> None:
    """Offer an attempt and its copies to the listener, and record the shop's answers.

    If the listener does not answer, the webhook awaits a listener's next call, and no attempt is counted.

    Raises:
        ProjectReset: the webhook belongs to an epoch that has ended.
    """
    offers = create_offers(prepared, label)
    project.relay.offer(offers)
    is_answered = False
    try:
        for offer in offers:
            reply = offer.wait()
            if reply is not None:
                retry(partial(record_attempt, project, epoch, prepared, reply, is_copy=is_answered))
                is_answered = True
                offer.end(is_recorded=True)
    finally:
        project.relay.withdraw(offers)
        for offer in offers:
            offer.end(is_recorded=False)
    if not is_answered:
        _await_next_listener(project, epoch, prepared.entry)


def _await_next_listener(project: Project, epoch: Epoch, entry: OutboxEntry) -> None:
    """Let a webhook await a listener; it is next if a listener is connected, or forwarding is off."""
    with project.blocking_edits(epoch):  # so that the setting cannot change meanwhile
        is_forwarding = project.settings.forward_to is not None
        is_connected = partial(project.relay.is_connected, is_doubtful=True)
        is_waiting = is_forwarding and epoch.outbox.await_listener(entry, is_connected)
    if not is_waiting:
        epoch.outbox.await_listener(entry, lambda: False)
        project.end_listener_wait()


log = logging.getLogger(__name__)


class InProcessReceiver(Protocol):
    """An application in this process that receives webhooks."""

    def __call__(self, request: WebhookRequest, on_status: "Callable[[int], None]", /) -> ReceiverAnswer:
        """Deliver one webhook, and report the response's status as soon as it is known."""
        ...

    def locate_handler(self, thread_id: int) -> str | None:
        """Locate the handler that a thread is waiting for, if any."""
        ...


class Destination:
    """A project's receiver of webhooks in this process, and the allowed hosts on other machines."""

    receiver: InProcessReceiver | None = None
    hosts: frozenset[str] | None = None  # hosts served by the receiver; None: all hosts
    on_waiting_thread = False  # the receiver runs on the thread that waits for the webhooks
    allowed: frozenset[str] = frozenset()  # hosts on other machines

    def receiver_for(self, url: str) -> InProcessReceiver | None:
        """Return the in-process receiver for this URL, if any."""
        is_served = self.hosts is None or (urlsplit(url).hostname or "") in self.hosts
        return self.receiver if is_served else None


DESTINATION: Final = Slot(Destination)


class Courier:
    """Delivers the webhooks of all projects, with a thread for each non-empty outbox."""

    def __init__(
        self,
        send: "Callable[[WebhookRequest, int], list[Reply]] | None" = None,
        *,
        trusted: Trust | None = None,
        local_only: bool = False,
        allowed_hosts: Collection[str] = (),
    ) -> None:
        """Create a courier; ``send`` replaces the network, and gets each request with its number of copies.

        ``trusted`` adds to the certificates that the system trusts. With ``local_only``, webhooks go only to
        this machine and to hosts that a project allows; ``allowed_hosts`` are the only hosts on the network.
        """
        self.statistics = Statistics()
        self._ending = Event()
        self._local_only = local_only
        self.allowed_hosts = tuple(map(normal_host, allowed_hosts))
        self._post_over_network: Send = partial(post_over_network, trusted=trusted)
        self._threads = Threads("courier")
        self._send = send

    def deliver_to(
        self,
        project: Project,
        receiver: "InProcessReceiver | None",
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

    def receiver_of(self, project: Project) -> "InProcessReceiver | None":
        """Return the in-process receiver of a project's webhooks, if any."""
        return project.slots.of(DESTINATION).receiver

    def deliver_outbox(self, project: Project, epoch: Epoch) -> None:
        """Deliver the webhooks in the outbox one by one, until it is empty.

        Delivery runs on another thread, or later on this thread if it is about to wait for the webhooks.
        """
        waiting = caller().waiting_thread()
        if waiting is not None and project.slots.of(DESTINATION).on_waiting_thread:
            waiting.carriers.append(partial(self._deliver_outbox, project, epoch))
        else:
            self._start_carrier(project, epoch)

    @contextmanager
    def waiting(self, project: Project | None = None) -> "Iterator[None]":
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
                for carrier in waiting.carriers:
                    assert isinstance(carrier, partial), "only this courier defers deliveries to the thread"
                    try:
                        self._start_carrier(*carrier.args)
                    except RuntimeError:  # the next webhook of the project asks for a carrier again
                        log.exception("no thread could be started to deliver webhooks")

    def deliver(self, project: Project, epoch: Epoch, entry: OutboxEntry) -> None:
        """Deliver one webhook on this thread; drop it if its epoch has ended."""
        with during_delivery(epoch.outbox), suppress(ProjectReset):
            self._deliver(project, epoch, entry)

    def _deliver(self, project: Project, epoch: Epoch, entry: OutboxEntry) -> None:
        retry = partial(self._until_stored, epoch)
        prepared = retry(lambda: prepare_attempt(project, epoch, entry))
        if prepared is None:
            return
        if prepared.reply is not None:
            replies = [(prepared.reply, prepared.real_at)]
        elif prepared.label is not None:
            forward(project, epoch, prepared, prepared.label, retry)
            return
        else:
            replies = self._send_copies(project, prepared)
            for reply, _ in replies:
                self.statistics.count_attempt(reply.status)
        for copy, (reply, sent_at) in enumerate(replies):
            sent = prepared._replace(real_at=sent_at)
            retry(partial(record_attempt, project, epoch, sent, reply, is_copy=copy > 0))

    def _until_stored(self, epoch: Epoch, work: "Callable[[], Any]") -> Any:
        """Run ``work``, and retry until the result is stored.

        Without the retry, the next webhook could overtake this webhook, or the shop could get it twice.
        """
        while True:
            try:
                return work()
            except NotStored as failed:
                if epoch.outbox.is_closed or self.pause(RETRY_SECONDS):
                    raise
                log.warning("storing a webhook attempt failed, retrying: %s", failed)

    def pause(self, seconds: float) -> bool:
        """Wait in real time; return True once the server stops."""
        return self._ending.wait(seconds)

    def stop(self) -> None:
        """Accept no more work; deliveries in flight are abandoned with the process."""
        self._ending.set()
        self._threads.stop()
        stop_watching()

    def _start_carrier(self, project: Project, epoch: Epoch) -> None:
        try:
            self._threads.run(partial(self._deliver_outbox, project, epoch))
        except RuntimeError:  # the system has no more threads
            epoch.outbox.dismiss_carrier()
            raise

    def _deliver_outbox(
        self, project: Project, epoch: Epoch, is_enough: "Callable[[], bool]" = lambda: False
    ) -> None:
        while (entry := epoch.outbox.next()) is not None:
            try:
                self.deliver(project, epoch, entry)
            except KeyboardInterrupt:  # on a test's thread; another thread delivers the rest
                epoch.outbox.hand_over()
                self._start_carrier(project, epoch)
                raise
            except BaseException:  # the next webhook must still be delivered
                webhook = entry.queued.delivery_id
                log.exception("webhook %s of project %s was not delivered", webhook, project.project_id)
            if is_enough():
                epoch.outbox.hand_over()
                self._start_carrier(project, epoch)
                return

    def _send_copies(self, project: Project, prepared: PreparedAttempt) -> list[tuple[Reply, datetime]]:
        """Send all copies, and return the replies with the real times at which the copies were sent.

        Other threads send them, so that the timeout also covers receivers that answer slowly. By default,
        copies go over the network in parallel, and to an application in this process one by one.
        """
        request, copies = prepared.request, range(prepared.copies)
        if self._send is not None:
            return [(reply, prepared.real_at) for reply in self._send(request, prepared.copies)]
        destination, real = project.slots.of(DESTINATION), project.services.real

        def wait_for_reply(posting: Posting) -> tuple[Reply, datetime]:
            reply = posting.wait()
            now = real.wall_now()  # read first, so that an attempt begins before the calls that it causes
            since = timedelta(seconds=real.monotonic_seconds() - posting.sent_seconds)
            return reply, max(prepared.real_at, now - since)

        receiver = destination.receiver_for(request.url)
        is_on_network, waiting = receiver is None, caller().waiting_thread()
        on_this_thread = destination.on_waiting_thread and waiting is not None and not is_on_network
        if prepared.are_parallel(over_network=is_on_network):
            postings = [self._post(destination, request, receiver) for _ in copies]
            return _align_start_times(list(map(wait_for_reply, postings)))
        return [
            wait_for_reply(self._post(destination, request, receiver, on_this_thread=on_this_thread))
            for _ in copies
        ]

    def _post(
        self,
        destination: Destination,
        request: WebhookRequest,
        receiver: InProcessReceiver | None,
        *,
        on_this_thread: bool = False,
    ) -> Posting:
        if receiver is not None:
            posting = Posting(request, receiver, receiver.locate_handler)
        else:
            posting = Posting(request, self._sender_to(urlsplit(request.url).hostname or "", destination))
        if on_this_thread:
            posting.run_on_waiting_thread()
        else:
            context = copy_context()  # so that the thread gets the event loop of a test
            self._threads.run(lambda: context.run(posting.run))
        return posting

    def _sender_to(self, host: str, destination: Destination) -> Send:
        if self._local_only and not is_local(host) and host not in destination.allowed:
            advice = "deliver_to(app) delivers them to the shop, and "
            advice += f"deliver_over_network(hosts=[{host!r}]) allows that host"
            return partial(_refuse, f"{NOT_SENT_IN_TESTS}; {advice}")
        if self.allowed_hosts and normal_host(host) not in self.allowed_hosts:
            advice = f"to allow {host}, add serve --deliver-to {host}"
            return partial(_refuse, f"{NOT_DELIVERED_TO} {', '.join(self.allowed_hosts)}; {advice}")
        return self._post_over_network


def _align_start_times(replies: list[tuple[Reply, datetime]]) -> list[tuple[Reply, datetime]]:
    """Adjust the start times of copies sent together, so that each copy starts before the first one ends."""
    first_end = min(sent_at + timedelta(milliseconds=reply.duration_ms) for reply, sent_at in replies)
    return [(reply, min(sent_at, first_end)) for reply, sent_at in replies]


def normal_host(name: str) -> str:
    """Normalize a host name: lower case, without a trailing dot or the brackets of an IPv6 address."""
    return name.lower().rstrip(".").strip("[]")


def _refuse(reason: str, request: WebhookRequest, on_status: "Callable[[int], None]") -> ReceiverAnswer:
    """Refuse to send a webhook.

    Raises:
        Undelivered: always; the reason names what allows the host.
    """
    raise Undelivered(reason)
