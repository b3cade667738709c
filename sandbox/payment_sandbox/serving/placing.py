"""The placement of calls, decided once, before the application runs.

Short calls run on the server's event loop. Slow calls run on a pool of a few threads. Calls that may wait run
on a pool of many threads, and are refused when it is full, because they could wait for one another. The
facts of the route, the state of the project and the length of the body decide. At each of these places, the
number of calls of one project is limited. The events of a stream are sent on the event loop after its call.
"""

from typing import Final

from payment_sandbox.operations.agenda import must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import digest
from payment_sandbox.projects.rehearsal_hooks import NO_REHEARSAL
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.auth import parse_api_key
from payment_sandbox.web.call import Call, Placement
from payment_sandbox.web.error_bodies import APIS, CONTROL_API

EVENT_LOOP_BYTES_MAX: Final = 1 << 13  # parsing a larger body would block the loop
WAITING_BYTES_MAX: Final = 1 << 16  # many threads that parse larger bodies would block the loop


def place(call: Call, length: int) -> None:
    """Decide where a call with a route runs, and in which group; ``length`` is that of its body."""
    project = _find_project(call)
    if project is not None:
        call.group = project.project_id
        project.used_at_seconds = project.services.real.monotonic_seconds()
    if call.connection.has_event_loop:
        call.placement = _decide(call, project, length)


def _decide(call: Call, project: Project | None, length: int) -> Placement:
    assert call.route is not None, "a route must match"
    facts, is_shared = call.route.facts, call.site.registry.is_shared
    if length > WAITING_BYTES_MAX:
        return Placement.SLOW
    if _may_wait(call, project):
        return Placement.WAITING
    if facts.streams and not is_shared:  # waits only after the call
        return Placement.EVENT_LOOP
    is_slow = is_shared or facts.slow or length > EVENT_LOOP_BYTES_MAX
    return Placement.SLOW if is_slow or _must_store(project) else Placement.EVENT_LOOP


def _find_project(call: Call) -> Project | None:
    """Find the project of a call if it is in memory."""
    environ = call.request.environ
    name = call.values.get("project_id")
    key = parse_api_key(environ.get("HTTP_AUTHORIZATION"))
    if name is None and key and environ["PATH_INFO"].startswith(APIS):
        name = digest(key)
    return call.site.registry.find_local(name) if name is not None else None


def _may_wait(call: Call, project: Project | None) -> bool:
    """Whether a call may wait: for its effect, webhooks, a fault, a rehearsal, or a call with its key."""
    assert call.route is not None, "a route must match"
    environ = call.request.environ
    if call.route.facts.waits or "HTTP_IDEMPOTENCY_KEY" in environ:
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
