"""The placement of calls, decided once, before the application runs.

Short calls that never wait run on the server's event loop, one in each iteration. All other calls run on
threads, of which few run at once; a thread that is about to wait lets another run. Large bodies are read on a
single thread, because parsing blocks the interpreter. The facts of the route, the state of the project and
the length of the body decide. Projects take turns at each of these places. The events of a stream are sent on
the event loop after its call.
"""

from typing import Final

from payment_sandbox.operations.agenda import must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import digest
from payment_sandbox.projects.rehearsal_hooks import NO_REHEARSAL
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.auth import parse_api_key
from payment_sandbox.web.call import Call, Placement
from payment_sandbox.web.error_bodies import APIS

EVENT_LOOP_BYTES_MAX: Final = 1 << 13  # parsing a larger body would block the loop
THREAD_BYTES_MAX: Final = 1 << 16


def place(call: Call, length: int) -> None:
    """Decide where a call with a route runs, and whose share it uses; ``length`` is that of its body."""
    project = _find_project(call)
    if project is not None:
        call.share = project.project_id
        project.used_at_seconds = project.services.real.monotonic_seconds()
    call.placement = _decide(call, project, length)


def _decide(call: Call, project: Project | None, length: int) -> Placement:
    assert call.route is not None, "a route must match"
    facts = call.route.facts
    if length > THREAD_BYTES_MAX:
        return Placement.READING_THREAD
    if call.site.registry.is_shared or not call.connection.has_event_loop:
        return Placement.THREAD
    if facts.streams:  # waits only after the call
        return Placement.EVENT_LOOP
    may_repeat = "HTTP_IDEMPOTENCY_KEY" in call.request.environ  # a repeated call waits for the first
    takes_long = facts.slow or facts.waits or may_repeat or length > EVENT_LOOP_BYTES_MAX
    return Placement.THREAD if takes_long or _may_wait(project) else Placement.EVENT_LOOP


def _find_project(call: Call) -> Project | None:
    """Find the project of a call if it is in memory."""
    environ = call.request.environ
    name = call.values.get("project_id")
    key = parse_api_key(environ.get("HTTP_AUTHORIZATION"))
    if name is None and key and environ["PATH_INFO"].startswith(APIS):
        name = digest(key)
    return call.site.registry.find_local(name) if name is not None else None


def _may_wait(project: Project | None) -> bool:
    """Whether calls to a project may wait or be slow."""
    if project is None:
        return False
    epoch = project.epoch
    return (
        epoch.store.is_durable
        or epoch.rehearsal is not NO_REHEARSAL
        or epoch.state.settings.webhook_timing == BEFORE_RESPONSE
        or bool(epoch.state.faults.faults or epoch.state.scenario_faults.faults)
        or must_catch_up(project)
    )
