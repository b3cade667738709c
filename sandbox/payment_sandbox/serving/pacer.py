"""The thread that wakes projects with a running clock when something is due."""

import heapq
import logging
from itertools import count
from math import inf
from threading import Condition, Thread
from typing import Final

from payment_sandbox.operations.advance import run_due
from payment_sandbox.projects.locks import PACER, ranked_lock
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import start

SLEEP_SECONDS_MAX: Final = 3600.0

log = logging.getLogger(__name__)


class Pacer:
    """Tracks, for each project, the real time of its next check."""

    def __init__(self) -> None:
        self._changed = Condition(ranked_lock(PACER))  # type: ignore[arg-type]
        self._sequence = count()
        self._heap: list[tuple[float, int, Project]] = []
        self._looked_at: dict[Project, float] = {}  # the valid heap entry of each project
        self._stopped = False
        self._thread = Thread(target=self._run, name="pacer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        start(self._thread)

    def notice(self, project: Project) -> None:
        """Reschedule a project whose agenda or clock has changed."""
        seconds = project.real_seconds_until_due()
        if seconds is None:
            return
        with self._changed:
            at_seconds = monotonic_seconds() + min(seconds, SLEEP_SECONDS_MAX)
            if project.is_deleted or self._looked_at.get(project, inf) <= at_seconds:
                return
            self._looked_at[project] = at_seconds
            heapq.heappush(self._heap, (at_seconds, next(self._sequence), project))
            self._changed.notify()

    def forget(self, project: Project) -> None:
        """Stop waking a project."""
        with self._changed:
            if self._looked_at.pop(project, None) is not None:
                self._heap = [entry for entry in self._heap if entry[2] is not project]
                heapq.heapify(self._heap)

    def stop(self) -> None:
        """End the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _run(self) -> None:
        while (project := self._next()) is not None:
            try:
                run_due(project)
            except Exception:
                log.exception("what was due in project %s could not be done", project.project_id)
            self.notice(project)
            del project  # it may be deleted before the next one is due

    def _next(self) -> Project | None:
        """Wait for the next project that is due; None when stopped."""
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
                if self._looked_at.get(project) == at_seconds:
                    del self._looked_at[project]
                    return project
            return None
