"""Applies the project's faults to requests: refused, delayed, cut off, or done but unanswered."""

from collections.abc import Callable, Iterator, Mapping
from threading import Event
from typing import Any, Final

from flask import Response, request

from payment_sandbox.projects.project import Project
from payment_sandbox.web.carried import CUT_OFF, SILENCE, exchange
from payment_sandbox.web.errors import RequestRefused, refused_answer
from payment_sandbox.web.placing import begin_waiting, may_wait

RATE_LIMITED: Final = 429
AFTER: Final = "after"
SILENCE_SECONDS: Final = 3.0


def strike_before(project: Project) -> Response | None:
    """Find this request's fault, and apply it if it comes before processing."""
    fault = _struck(project) or exchange().staged
    if not fault or "early" in fault:
        return None
    begin_waiting()
    exchange().fault = dict(fault)
    if "latency" in fault:
        _pass_real_time(fault["latency"])
    if "rate_limit" in fault:
        raise RequestRefused(
            RATE_LIMITED, f"over the rate limit of {fault['rate_limit']}", {"Retry-After": "1"}
        )
    return None if fault.get("phase") == AFTER else _strike(fault)


def _struck(project: Project) -> Mapping[str, Any]:
    """The fault that is configured for this request, which is counted."""
    state = project.epoch.state
    if not may_wait() or (not state.faults.faults and not state.scenario_faults.faults):
        return {}
    with project.edit() as edit:
        own, faults = edit.state.faults.strike(request.method, request.path, edit.now)
        scenario, scenario_faults = edit.state.scenario_faults.strike(request.method, request.path, edit.now)
        edit.state = edit.state._replace(faults=faults, scenario_faults=scenario_faults)
    return own or scenario


def strike_after(response: Response) -> Response:
    """Apply a fault that comes after processing: the response is lost or cut short."""
    fault = exchange().fault
    if fault.get("truncate"):
        return _truncated(response)
    if fault.get("phase") == AFTER:
        return _strike(fault, response.status_code) or response
    return response


def _strike(fault: Mapping[str, Any], status: int | None = None) -> Response | None:
    """The response instead; ``status`` is that of the lost response."""
    if "status" in fault:
        return refused_answer(RequestRefused(fault["status"], "a configured fault"))
    silence = request.environ.get(SILENCE) if "silence" in fault else None
    if "silence" in fault and silence is None:
        _pass_real_time(SILENCE_SECONDS)
    if "hang" in fault:
        _pass_real_time(fault["hang"])
    if fault.keys() & {"hang", "reset", "silence"}:
        exchange().is_cut, exchange().cut_status = True, status
        return Response(_cut_off(silence or request.environ[CUT_OFF]))
    return None


def _pass_real_time(seconds: float) -> None:
    Event().wait(seconds)  # the only real-time wait; the fault requires it


def _cut_off(cut_off: Callable[[], None]) -> Iterator[bytes]:
    cut_off()
    yield b""


def _truncated(response: Response) -> Response:
    """Announce the full length, but send only half of the body."""
    body = response.get_data()
    cut_off = request.environ[CUT_OFF]

    def half() -> Iterator[bytes]:
        yield body[: len(body) // 2]
        cut_off()

    short = Response(half(), status=response.status_code, headers=response.headers)
    short.headers["Content-Length"] = str(len(body))
    return short
