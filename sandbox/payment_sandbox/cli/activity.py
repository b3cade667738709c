"""The output of ``serve``: a line for each call, webhook attempt and status change."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from threading import Condition, Thread
from typing import Any, Final, NamedTuple
from weakref import ref

import click

from payment_sandbox.cli.options import Write, short_time, to_standard_output, write_text
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.events import Event
from payment_sandbox.projects.journal import ERROR_STATUS_MIN
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.starting import FIRST_PROJECT_NAME
from payment_sandbox.serving.threads import start

GREEN: Final = "green"
RED: Final = "red"
YELLOW: Final = "yellow"
DEFERRED_MAX: Final = 200
ACTIONS_MAX: Final = 1000
MASKING: Final = Masking()
NO_WEBHOOK_URL: Final = (
    "no webhook was sent: neither the order nor the project has a webhook_url; set one with "
    "serve --webhook-url URL, payment-sandbox settings webhook_url=URL, or in the order"
)


class RefusedRequest(NamedTuple):
    """A request without a project, for example with an unknown key."""

    method: str
    path: str
    status: int
    reason: str


class ActivityLine(NamedTuple):
    """One line, without secrets; ``data`` has the values for JSON output."""

    kind: str
    text: str
    data: Mapping[str, Any] = {}
    colour: str | None = None
    project_id: str | None = None


class LineWriter:
    """Turns the events of one project into lines, with each request before its effects."""

    def __init__(self) -> None:
        self._deferred: dict[str, list[ActivityLine]] = {}  # lines by request, until the request is printed
        self._actions: dict[str, str] = {}  # actor and action, by the id of the action
        self._has_warned = False  # whether a missing webhook_url has been reported

    def lines(self, event: Event, project: Project) -> Iterator[ActivityLine]:
        """Yield the lines of an event, and the lines deferred until this event."""
        format_event = _FORMATTERS[event.kind]
        cause = event.data.get("cause") or ""
        if event.kind == "status" and cause.startswith("request-") and len(self._deferred) < DEFERRED_MAX:
            self._deferred.setdefault(cause, []).extend(format_event(self, event.data, project))
            return
        if event.kind == "webhook":
            yield from self._release(*self._deferred)
        yield from format_event(self, event.data, project)
        if event.kind == "request":
            yield from self._release(str(event.data["id"]))

    def _release(self, *causes: str) -> Iterator[ActivityLine]:
        for cause in causes:
            yield from self._deferred.pop(cause, ())

    def _request_lines(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        status = data["status"]
        parts = [f"{data['method']} {data['path']}  {status or 'connection cut'}", *_request_notes(data)]
        colour = RED if status is None or status >= ERROR_STATUS_MIN else YELLOW if data["unknown"] else GREEN
        yield _create_line(project, "request", data, "  ".join(parts), colour)

    def _record_action(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        if len(self._actions) > ACTIONS_MAX:
            self._actions.clear()
        self._actions[data["id"]] = f"{data['actor']}: {data['action']}"
        yield from ()

    def _status_lines(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        before, after = data["before"], data["after"]
        if before is None and after == "new":
            return  # the request's own line shows the new order
        action = self._actions.get(data["cause"] or "")
        reason = f"  ({action})" if action else ""
        change = f"{before} -> {after}" if before else f"is {after}"
        yield _create_line(project, "status", data, f"order {data['order_id']}  {change}{reason}")
        if not self._has_warned and _lacks_webhook_url(project, data["order_id"]):
            self._has_warned = True
            yield _create_line(
                project, "untold", {"at": data["at"], "order_id": data["order_id"]}, NO_WEBHOOK_URL, YELLOW
            )

    def _webhook_lines(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        status, error, fault = data["status"], data["error"], data["fault"]
        answer = f"answered {status} in {data['duration_ms']:.0f} ms" if status else error
        parts = [
            f"webhook {data['order_status']} to {data['url']}",
            *((answer, data["warning"]) if fault is None else (f"{fault}, never sent",)),
            f"order {data['order_id']}",
        ]
        if data["next_at"] is not None:
            parts.append(f"attempt {data['number']}, the next one at {short_time(data['next_at'])}")
        elif data["state"] == "failed":
            parts.append(f"attempt {data['number']} was the last one")
        failed = error or (status or 0) >= ERROR_STATUS_MIN
        colour = RED if failed else YELLOW if data["warning"] else GREEN
        colour = colour if fault is None else YELLOW
        yield _create_line(project, "webhook", data, "  ".join(filter(None, parts)), colour)

    def _waiting_lines(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        yield _create_line(project, "waiting", data, f"{data['label']}  order {data['order_id']}", YELLOW)


_FORMATTERS: Final[
    Mapping[str, Callable[[LineWriter, Mapping[str, Any], Project], Iterator[ActivityLine]]]
] = {
    "request": LineWriter._request_lines,
    "action": LineWriter._record_action,
    "status": LineWriter._status_lines,
    "webhook": LineWriter._webhook_lines,
    "waiting": LineWriter._waiting_lines,
}
KINDS: Final = frozenset(_FORMATTERS)
"""The kinds of events that are printed."""


def _create_line(
    project: Project, kind: str, data: Mapping[str, Any], text: str, colour: str | None = None
) -> ActivityLine:
    name = project.settings.name
    label = "" if name == FIRST_PROJECT_NAME else f"[{name or project.project_id[:8]}] "
    text = f"{short_time(data['at'])}  {label}{text}"
    return ActivityLine(kind, text, data, colour, project.project_id)


def _lacks_webhook_url(project: Project, order_id: str) -> bool:
    order = project.epoch.store.order(order_id)
    return project.settings.webhook_url_of(order.webhook_url if order is not None else None) is None


def _request_notes(data: Mapping[str, Any]) -> Iterator[str]:
    if data["order_id"] and data["order_id"] not in data["path"]:
        yield f"order {data['order_id']}"
    if data["error"]:
        yield data["error"]
    if data["rule"]:
        yield f"rule {data['rule']}"
    if data["fault"]:
        yield "injected by a fault"
    if data["unknown"]:
        yield f"ignored: {', '.join(data['unknown'])}"
    yield from (f"warning: {warning}" for warning in data["warnings"])


def format_refusal(refused: RefusedRequest) -> ActivityLine:
    """Return the line for a request without a project."""
    data = MASKING.mask_record(refused._asdict())
    text = f"{data['method']} {data['path']}  {data['status']}  {data['reason']}"
    return ActivityLine("refused", f"{'refused':19}  {text}", data, RED)


PENDING_MAX: Final = 1000  # the limit for unprinted projects and refusals
BATCH_SECONDS: Final = 0.06  # a delay too short to notice; each batch slows the requests a little
STOP_SECONDS: Final = 0.5

log = logging.getLogger(__name__)

LineFormatter = Callable[[ActivityLine], str]
"""Formats a line."""


class _PrintedProject:
    """A project (weakly referenced), and the number of its last printed event."""

    def __init__(self, project: Project, activity: "Activity") -> None:
        self.project = ref(project)
        self.number = project.events.number
        self.writer = LineWriter()
        self.is_queued = False
        self._activity = activity

    def on_event(self) -> None:
        """Queue the project for printing; the events' lock is held."""
        if not self.is_queued:
            self.is_queued = True
            self._activity.enqueue(self)


class Activity:
    """Prints the events of all projects of a server, on a thread of its own.

    If the output blocks, the thread waits and misses events; requests never wait for it.
    """

    def __init__(
        self,
        format_line: LineFormatter,
        *,
        write: Write = to_standard_output,
        batch_seconds: float = BATCH_SECONDS,
    ) -> None:
        """Batch the lines of ``batch_seconds`` into one call to ``write``."""
        self._format_line = format_line
        self._write = write
        self._batch_seconds = batch_seconds
        self._changed = Condition()
        self._queue: deque[_PrintedProject] = deque()
        self._refused: deque[RefusedRequest] = deque(maxlen=PENDING_MAX)
        self._refused_dropped = 0
        self._stopped = False
        self._thread = Thread(target=self._run, name="activity", daemon=True)

    def on_opened(self, project: Project) -> None:
        """Print the events of a project from now on."""
        project.events.add_listener(_PrintedProject(project, self).on_event)

    def on_refused(self, method: str, path: str, status: int, reason: str) -> None:
        """Print a request without a project."""
        with self._changed:
            self._refused_dropped += len(self._refused) == PENDING_MAX
            self._refused.append(RefusedRequest(method, path, status, reason))
            self._changed.notify()

    def __enter__(self) -> "Activity":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the printing thread."""
        start(self._thread)

    def stop(self) -> None:
        """Print all events so far, and stop the thread."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def enqueue(self, printed: _PrintedProject) -> None:
        """Queue a project for printing."""
        with self._changed:
            if len(self._queue) >= PENDING_MAX:  # the output blocks; the next event requeues the project
                self._queue.popleft().is_queued = False
            if not self._stopped:
                self._queue.append(printed)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while self._print_batch():
                pass
        except OSError:  # the reader has closed the output
            with self._changed:
                self._stopped = True
                self._queue.clear()

    def _print_batch(self) -> bool:
        """Wait for events and print them; return False after the last batch."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._queue or self._refused)
            # a few large batches slow a busy server's requests less than many small ones
            self._changed.wait_for(lambda: self._stopped, self._batch_seconds)
            is_last, refused, dropped, queue = (
                self._stopped,
                list(self._refused),
                self._refused_dropped,
                list(self._queue),
            )
            self._refused.clear()
            self._queue.clear()
            self._refused_dropped = 0
        texts = chain(
            self._format_lines(_missed_lines(dropped)), self._format_lines(map(format_refusal, refused))
        )
        write_text("".join(chain(texts, *map(self._unprinted_lines, queue))), self._write)
        return not is_last

    def _unprinted_lines(self, printed: _PrintedProject) -> Iterator[str]:
        """Yield the unprinted lines of a project."""
        project = printed.project()
        if project is None:
            return
        printed.is_queued = False  # the next event queues the project again
        events, number = project.events, printed.number
        yield from self._format_lines(_missed_lines(events.oldest_number() - number - 1))
        for stored in events.stored_after(number):
            printed.number = stored.number
            if stored.kind not in KINDS:
                continue
            try:
                yield "".join(self._format_lines(printed.writer.lines(stored.read(), project)))
            except Exception:
                log.exception("printing event %s of project %s failed", stored.number, project.project_id)

    def _format_lines(self, lines: Iterable[ActivityLine]) -> Iterator[str]:
        return (f"{self._format_line(line)}\n" for line in lines)


def _missed_lines(count: int) -> Iterator[ActivityLine]:
    if count > 0:
        yield ActivityLine("missed", f"{count} events skipped: too many to print", {"count": count})


def text_formatter(*, is_coloured: bool) -> LineFormatter:
    """Return a formatter for plain text, in colour on a terminal."""

    def format_text(line: ActivityLine) -> str:
        text = make_printable(line.text)
        return click.style(text, fg=line.colour) if is_coloured and line.colour else text

    return format_text


def format_json(line: ActivityLine) -> str:
    """Format a line as one JSON object."""
    shown: dict[str, Any] = {"level": "info", "message": line.text, "kind": line.kind}
    if line.project_id is not None:
        shown["project_id"] = line.project_id
    return json.dumps({**shown, **line.data})
