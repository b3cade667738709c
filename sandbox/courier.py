"""The threads that POST webhooks: one carrier per project, so that no receiver delays another project's."""

import logging
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from sandbox.operations.deliver import arrive, depart, release_swapped
from sandbox.orders.deliveries import BODY_KEPT_BYTES, Parcel, Reply
from sandbox.projects.outbox import Errand
from sandbox.projects.project import Project
from sandbox.realtime import monotonic_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_SECONDS: Final = 5.0  # SET-57
IDLE_THREADS_MAX: Final = 16

log = logging.getLogger(__name__)


class Courier:
    """Carries the outboxes of all projects; ``send`` puts copies of a parcel on the wire."""

    def __init__(self, send: "Callable[[Parcel, int], list[Reply]] | None" = None) -> None:
        self._threads = Threads("courier")
        self._send = send or self._post_in_time

    def attach(self, project: Project) -> None:
        """Carry this project's outbox from now on."""
        project.outbox.carry = lambda: self._threads.run(lambda: self._carry(project))

    def stop(self) -> None:
        """Take no more work; what is on its way is abandoned with the process."""
        self._threads.stop()

    def _carry(self, project: Project) -> None:
        """Deliver one errand after the other until the outbox is empty."""
        while (errand := project.outbox.take()) is not None:
            try:
                self._deliver(project, errand)
            except Exception:
                log.exception(
                    "webhook %s of project %s was not delivered", errand.delivery_id, project.project_id
                )

    def _deliver(self, project: Project, errand: Errand) -> None:
        departure = depart(project, errand)
        if departure is None:
            return
        if departure.reply is not None:
            arrive(project, departure, departure.reply)
        else:
            for reply in self._send(departure.parcel, departure.copies):
                arrive(project, departure, reply)
        release_swapped(project)

    def _post_in_time(self, parcel: Parcel, copies: int) -> list[Reply]:
        """Post all copies at once, on other threads.

        So the limit also holds for a receiver that answers byte by byte.
        """
        begun_seconds = monotonic_seconds()
        answers = [self._posted(parcel) for _ in range(copies)]
        return [_in_time(answer, begun_seconds) for answer in answers]

    def _posted(self, parcel: Parcel) -> "Future[Reply]":
        answer: Future[Reply] = Future()
        self._threads.run(lambda: answer.set_result(post(parcel)))
        return answer


def _in_time(answer: "Future[Reply]", begun_seconds: float) -> Reply:
    try:
        return answer.result(begun_seconds + TIMEOUT_SECONDS - monotonic_seconds())
    except FutureTimeout:
        duration_ms = (monotonic_seconds() - begun_seconds) * 1000
        return Reply(duration_ms, error=f"no answer within {TIMEOUT_SECONDS:g} seconds")


def post(parcel: Parcel) -> Reply:
    """POST a webhook: no redirect followed, no proxy or credentials taken from the environment."""
    import requests  # here, because starting up is faster without it

    begun_seconds = monotonic_seconds()
    try:
        with requests.Session() as session:
            session.trust_env = False
            session.headers.clear()
            with session.post(
                parcel.url,
                data=parcel.body,
                headers=parcel.headers,
                timeout=TIMEOUT_SECONDS,
                allow_redirects=False,
                stream=True,
            ) as response:
                body = response.raw.read(BODY_KEPT_BYTES, decode_content=True)
                duration_ms = (monotonic_seconds() - begun_seconds) * 1000
                warning = "redirects are not followed" if response.is_redirect else None
                return Reply(
                    duration_ms, response.status_code, body.decode(errors="replace"), warning=warning
                )
    except Exception as error:  # whatever a receiver does, it is a failed delivery and not a lost one
        duration_ms = (monotonic_seconds() - begun_seconds) * 1000
        return Reply(duration_ms, error=f"{type(error).__name__}: {error}"[:500])


class Threads:
    """Daemon threads made on demand, a few kept for the next job; a stuck one holds nobody up."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = Lock()
        self._idle: list[SimpleQueue[Callable[[], None] | None]] = []
        self._stopped = False

    def run(self, job: "Callable[[], None]") -> None:
        """Run a job on an idle thread, or on a new one."""
        with self._lock:
            if self._stopped:
                return
            inbox = self._idle.pop() if self._idle else None
        if inbox is not None:
            inbox.put(job)
            return
        inbox = SimpleQueue()
        inbox.put(job)
        Thread(target=self._work, args=(inbox,), name=self._name, daemon=True).start()

    def stop(self) -> None:
        """Send the idle threads home and take no more jobs."""
        with self._lock:
            self._stopped = True
            idle, self._idle = self._idle, []
        for inbox in idle:
            inbox.put(None)

    def _work(self, inbox: "SimpleQueue[Callable[[], None] | None]") -> None:
        while (job := inbox.get()) is not None:
            job()
            with self._lock:
                if self._stopped or len(self._idle) >= IDLE_THREADS_MAX:
                    return
                self._idle.append(inbox)
