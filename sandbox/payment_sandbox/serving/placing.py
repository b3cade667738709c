"""The placement of calls, decided once, before the application runs.

Short calls run on the server's event loop. Slow calls run on a pool of a few threads. Calls that may wait run
on a pool of many threads, and are refused when it is full, because they could wait for one another. The
facts of the route, the state of the project and the length of the body decide. At each of these places, the
number of calls of one project is limited. The events of a stream are sent on the event loop after its call.
"""

from asyncio import AbstractEventLoop, CancelledError, Future, Semaphore
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from payment_sandbox.operations.agenda import must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import digest
from payment_sandbox.projects.rehearsal_hooks import NO_REHEARSAL
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.serving.threads import Threads
from payment_sandbox.web.auth import parse_api_key
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import APIS, CONTROL_API

EVENT_LOOP_BYTES_MAX: Final = 1 << 13  # parsing a larger body would block the loop
WAITING_BYTES_MAX: Final = 1 << 16  # many threads that parse larger bodies would block the loop


def find_named(call: Call) -> None:
    """Find the project that a call names by its path or key, and note that it is in use."""
    environ = call.request.environ
    name = call.values.get("project_id")
    key = parse_api_key(environ.get("HTTP_AUTHORIZATION"))
    if name is None and key and environ["PATH_INFO"].startswith(APIS):
        name = digest(key)
    project = call.site.registry.find_by_name(name) if name is not None else None
    if project is not None:
        project.used_at_seconds = project.services.real.monotonic_seconds()
        call.named, call.group = project, project.project_id


class Placement(Enum):
    """Where a call runs."""

    EVENT_LOOP = auto()
    SLOW = auto()
    WAITING = auto()


def place(call: Call, length: int) -> Placement:
    """Decide where a call runs; ``length`` is that of its body."""
    if call.route is None:  # refused at once
        return Placement.EVENT_LOOP
    facts, project = call.route.facts, call.named
    if length > WAITING_BYTES_MAX:
        return Placement.SLOW
    if facts.waits or _may_wait(call.request.environ, project):
        return Placement.WAITING
    if facts.streams:  # waits only after the call
        return Placement.EVENT_LOOP
    is_slow = facts.slow or length > EVENT_LOOP_BYTES_MAX or _must_store(project)
    return Placement.SLOW if is_slow else Placement.EVENT_LOOP


def _may_wait(environ: Mapping[str, Any], project: Project | None) -> bool:
    """Whether a call may wait for webhooks, a fault, a rehearsal, or a call with the same key."""
    if "HTTP_IDEMPOTENCY_KEY" in environ:
        return True
    if project is None:
        return False
    state, rehearsal = project.epoch.state, project.epoch.rehearsal
    if rehearsal is not NO_REHEARSAL or state.settings.webhook_timing == BEFORE_RESPONSE:
        return True
    has_faults = state.faults.faults or state.scenario_faults.faults
    # the control API has no faults, and removes them however many calls are delayed
    return bool(has_faults) and not environ["PATH_INFO"].startswith(CONTROL_API)


def _must_store(project: Project | None) -> bool:
    """Whether calls to a project wait for its file, or run due events first."""
    return project is not None and (project.epoch.store.is_durable or must_catch_up(project))


Result = TypeVar("Result")


class Places:
    """Places for calls of one kind, of which each group of calls has some; for the event loop only.

    The calls of a group get their places in the order in which they came, and a crowd waits in its own group.
    """

    def __init__(self, total: int, per_group: int) -> None:
        self._total = Semaphore(total)
        self._per_group = per_group
        self._groups: WeakValueDictionary[str, Semaphore] = WeakValueDictionary()

    def has_free(self, group: str) -> bool:
        """Whether a call of this group would get a place at once."""
        own = self._groups.get(group)
        return not self._total.locked() and (own is None or not own.locked())

    async def take(self, group: str) -> Callable[[], None]:
        """Wait for a place; return the function that gives it back."""
        own = self._groups.setdefault(group, Semaphore(self._per_group))
        await own.acquire()
        try:
            await self._total.acquire()
        except CancelledError:
            own.release()
            raise

        def give_back() -> None:
            self._total.release()
            own.release()

        return give_back


class Pool(Places):
    """Threads for calls of one kind."""

    def __init__(self, loop: AbstractEventLoop, threads: Threads, total: int, per_group: int) -> None:
        super().__init__(total, per_group)
        self._loop = loop
        self._threads = threads

    async def start(self, group: str, work: Callable[[], Result]) -> Future[Result]:
        """Start work on a thread once it has a place, which it keeps to its end."""
        give_back = await self.take(group)
        future: Future[Result] = self._loop.create_future()
        future.add_done_callback(lambda _: give_back())

        def run() -> None:
            try:
                settle = partial(future.set_result, work())
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(settle)

        self._threads.run(run)
        return future
