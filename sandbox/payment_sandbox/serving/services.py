"""Services for a server's projects: webhooks, running clocks and housekeeping."""

import heapq
import logging
from itertools import count
from math import inf
from threading import Condition, Event, Thread
from typing import Final, Protocol

from payment_sandbox.delivery.sending import ProjectSender
from payment_sandbox.operations.advance import run_due
from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.locks import SCHEDULER, ranked_lock
from payment_sandbox.projects.outbox import Outbox
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.store import NotStored
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.serving.threads import start
from payment_sandbox.storage.journal_rows import save_new_records

SLEEP_SECONDS_MAX: Final = 3600.0
RETRY_SECONDS: Final = 1.0  # the delay before a retry, if the state cannot be stored

log = logging.getLogger(__name__)


class Scheduler:
    """Schedules the next check of each project in real time."""

    def __init__(self) -> None:
        self._changed = Condition(ranked_lock(SCHEDULER))  # type: ignore[arg-type]
        self._sequence = count()
        self._heap: list[tuple[float, int, Project]] = []
        self._scheduled: dict[Project, float] = {}  # each project's valid entry in the heap
        self._stopped = False
        self._thread = Thread(target=self._run, name="scheduler", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        start(self._thread)

    def schedule(self, project: Project, delay_seconds_min: float = 0.0) -> None:
        """Reschedule a project after a change to its agenda or clock."""
        seconds = project.real_seconds_until_due()
        if seconds is None:
            return
        with self._changed:
            at_seconds = monotonic_seconds() + max(min(seconds, SLEEP_SECONDS_MAX), delay_seconds_min)
            if project.is_deleted or self._scheduled.get(project, inf) <= at_seconds:
                return
            self._scheduled[project] = at_seconds
            heapq.heappush(self._heap, (at_seconds, next(self._sequence), project))
            self._changed.notify()

    def forget(self, project: Project) -> None:
        """Stop waking a project."""
        with self._changed:
            if self._scheduled.pop(project, None) is not None:
                self._heap = [entry for entry in self._heap if entry[2] is not project]
                heapq.heapify(self._heap)

    def stop(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _run(self) -> None:
        while (project := self._wait_for_next()) is not None:
            try:
                run_due(project)
            except NotStored as failed:
                log.warning("cannot run due events of project %s: %s", project.project_id, failed)
                self.schedule(project, RETRY_SECONDS)
                continue
            except Exception:
                log.exception("due events of project %s failed", project.project_id)
            self.schedule(project)
            del project  # so that a deleted project can be freed

    def _wait_for_next(self) -> Project | None:
        """Wait for the next due project; None when stopped."""
        with self._changed:
            while not self._stopped:
                if not self._heap:
                    self._changed.wait()
                    continue
                at_seconds, _, project = self._heap[0]
                seconds = at_seconds - monotonic_seconds()
                if seconds > 0:
                    self._changed.wait(seconds)
                    continue
                heapq.heappop(self._heap)
                if self._scheduled.get(project) == at_seconds:
                    del self._scheduled[project]
                    return project
            return None


class Housekeeper:
    """Stores journals shortly after the responses, and deletes idle projects."""

    EVERY_SECONDS: Final = 0.5

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="housekeeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        start(self._thread)

    def stop(self) -> None:
        """Store the remaining records, and stop the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(1.0)
        self.clean_up()

    def _run(self) -> None:
        while not self._stopping.wait(self.EVERY_SECONDS):
            self.clean_up()

    def clean_up(self) -> None:
        """Store new records of each project, and delete expired projects."""
        for project in self._registry.all():
            try:
                if project.is_over():
                    self._registry.delete(project)
                else:
                    save_new_records(project)
            except NotStored as failed:
                log.warning("project %s: %s", project.project_id, failed)
            except Exception:
                log.exception("housekeeping for project %s failed", project.project_id)


class Observer(Protocol):
    """An observer of a server, such as the log of ``serve``. Called on any thread; must return at once."""

    def on_opened(self, project: Project) -> None:
        """Handle a new or resumed project, whose events can now be watched."""
        ...

    def on_refused(self, method: str, path: str, status: int, reason: str) -> None:
        """Handle a request refused before its project was known, and therefore missing from all journals."""
        ...


REAL_TIME: Final = RealTime(wall_now, monotonic_seconds)


class ServerServices(Services):
    """The courier and scheduler for all projects of a server."""

    def __init__(self, courier: Courier, projects_max: int | None, observer: Observer | None) -> None:
        super().__init__(REAL_TIME)
        self.projects_max = projects_max
        self._observer = observer
        self.courier = courier
        self.scheduler = Scheduler()

    def create_outbox(self, project: Project) -> Outbox:
        """Create an outbox whose webhooks the courier delivers."""
        return Outbox(ProjectSender(project, self.courier.receiver, self.courier.run))

    def wake(self, project: Project) -> None:
        """Reschedule the project's next check."""
        self.scheduler.schedule(project)

    def on_opened(self, project: Project) -> None:
        """Let the observer watch a project."""
        if self._observer is not None:
            self._observer.on_opened(project)

    def forget(self, project: Project) -> None:
        """Drop all references to a deleted project."""
        self.scheduler.forget(project)
