"""The output of ``serve``: a line for each call and each webhook attempt."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any, Final
from weakref import ref

from payment_sandbox.cli.options import Write, short_time, to_standard_output, write_text
from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.starting import FIRST_PROJECT_NAME
from payment_sandbox.serving.threads import start

MASKING: Final = Masking()
PENDING_MAX: Final = 1000  # the limit for unprinted projects and refusals
BATCH_SECONDS: Final = 0.06  # a delay too short to notice; each batch slows the requests a little
STOP_SECONDS: Final = 0.5
NO_WEBHOOK_URL: Final = (
    "no webhook was sent: neither the order nor the project has a webhook_url; set one with "
    "serve --webhook-url URL, payment-sandbox settings webhook_url=URL, or in the order"
)
Data = Mapping[str, Any]

log = logging.getLogger(__name__)


@dataclass
class _Watched:
    project: ref[Project]
    number: int  # of the last printed event
    is_queued: bool = False
    has_warned: bool = False  # of a missing webhook_url


class Activity:
    """Prints the calls and webhooks of all projects of a server, on a thread of its own.

    If the output blocks, the thread waits and misses events; requests never wait for it.
    """

    def __init__(
        self, *, as_json: bool, write: Write = to_standard_output, batch_seconds: float = BATCH_SECONDS
    ) -> None:
        """Batch the lines of ``batch_seconds`` into one call to ``write``."""
        self._as_json = as_json
        self._write = write
        self._batch_seconds = batch_seconds
        self._queue: deque[_Watched] = deque()
        self._refused: deque[Data] = deque(maxlen=PENDING_MAX)
        self._changed, self._stopped = Event(), Event()
        self._thread = Thread(target=self._run, name="activity", daemon=True)

    def on_opened(self, project: Project) -> None:
        """Print the events of a project from now on."""
        watched = _Watched(ref(project), project.events.number)

        def enqueue() -> None:  # the events' lock is held
            if not watched.is_queued and len(self._queue) < PENDING_MAX:  # else the output blocks
                watched.is_queued = True
                self._queue.append(watched)
                self._changed.set()

        project.events.add_listener(enqueue)

    def on_refused(self, method: str, path: str, status: int, reason: str) -> None:
        """Print a request without a project."""
        self._refused.append({"method": method, "path": path, "status": status, "reason": reason})
        self._changed.set()

    def __enter__(self) -> "Activity":
        start(self._thread)
        return self

    def __exit__(self, *error: object) -> None:
        """Print all events so far, and stop the thread."""
        self._stopped.set()
        self._changed.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        with suppress(OSError):  # the reader has closed the output
            is_last = False
            while not is_last:
                self._changed.wait()
                # a few large batches slow a busy server's requests less than many small ones
                is_last = self._stopped.wait(self._batch_seconds)
                self._changed.clear()
                write_text("".join(f"{line}\n" for line in self._lines()), self._write)

    def _lines(self) -> Iterator[str]:
        for _ in range(len(self._refused)):
            data = MASKING.mask_record(self._refused.popleft())
            text = f"{data['method']} {data['path']}  {data['status']}  {data['reason']}"
            yield self._format("refused", f"{'refused':19}  {text}", data)
        for _ in range(len(self._queue)):
            watched = self._queue.popleft()
            watched.is_queued = False  # the next event queues the project again
            project = watched.project()
            if project is not None:
                yield from self._lines_of(watched, project)

    def _lines_of(self, watched: _Watched, project: Project) -> Iterator[str]:
        name, project_id = project.settings.name, project.project_id
        label = "" if name == FIRST_PROJECT_NAME else f"[{name or project_id[:8]}] "
        missed = project.events.oldest_number() - watched.number - 1
        if missed > 0:
            yield self._format("missed", f"{missed} events skipped: too many to print", {"count": missed})
        for stored in project.events.events_after(watched.number):
            watched.number = stored.number
            if stored.kind not in FORMATS and (stored.kind != "status" or watched.has_warned):
                continue  # most events are never read
            try:
                data = {"project_id": project_id, **stored.data}
                if stored.kind in FORMATS:
                    text = FORMATS[stored.kind](data)
                elif _lacks_webhook(data, project):
                    watched.has_warned, text = True, NO_WEBHOOK_URL
                else:
                    continue
                yield self._format(stored.kind, f"{short_time(data['at'])}  {label}{text}", data)
            except Exception:
                log.exception("printing event %s of project %s failed", stored.number, project_id)

    def _format(self, kind: str, text: str, data: Data) -> str:
        if self._as_json:
            return json.dumps({"level": "info", "message": text, "kind": kind, **data})
        return make_printable(text)


def _describe_request(data: Data) -> str:
    order_id = data["order_id"] if data["order_id"] and data["order_id"] not in data["path"] else None
    notes = (
        order_id and f"order {order_id}",
        data["error"],
        data["rule"] and f"rule {data['rule']}",
        data["fault"] and "injected by a fault",
        data["unknown"] and f"ignored: {', '.join(data['unknown'])}",
        *(f"warning: {warning}" for warning in data["warnings"]),
    )
    status = data["status"] or "connection cut"
    return "  ".join([f"{data['method']} {data['path']}  {status}", *filter(None, notes)])


def _describe_webhook(data: Data) -> str:
    status = data["status"] and f"answered {data['status']} in {data['duration_ms']:.0f} ms"
    notes = (
        *((f"{data['fault']}, never sent",) if data["fault"] else (data["error"], status, data["warning"])),
        f"order {data['order_id']}",
        data["next_at"] and f"attempt {data['number']}, the next one at {short_time(data['next_at'])}",
        data["state"] == "failed" and f"attempt {data['number']} was the last one",
    )
    return "  ".join([f"webhook {data['order_status']} to {data['url']}", *filter(None, notes)])


FORMATS: Final[Mapping[str, Callable[[Data], str]]] = {
    "request": _describe_request,
    "webhook": _describe_webhook,
    "waiting": lambda data: f"{data['label']}  order {data['order_id']}",
}


def _lacks_webhook(data: Data, project: Project) -> bool:
    order = project.epoch.store.order(data["order_id"])
    url = project.settings.webhook_url_of(order.webhook_url if order is not None else None)
    return url is None and (data["before"] is not None or data["after"] != "new")
