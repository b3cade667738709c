"""What ``serve`` prints while it runs: a line for each call, webhook attempt and status change."""

import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from threading import Condition, Thread
from typing import Any, Final, NamedTuple
from weakref import ref

import click

from payment_sandbox.cli.options import Write, put, to_standard_output
from payment_sandbox.kernel.masking import Masking, mask
from payment_sandbox.kernel.patterns import printable
from payment_sandbox.projects.events import EVENTS_STORED_MAX, Event
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.starting import FIRST_NAME
from payment_sandbox.serving.threads import start

FAILING: Final = 400
GOOD: Final = "green"
BAD: Final = "red"
NOTABLE: Final = "yellow"
HELD_MAX: Final = 200
ACTIONS_KEPT_MAX: Final = 1000
NOBODY_TOLD: Final = (
    "nobody was told: neither the order nor the project has a webhook_url; set one with "
    "serve --webhook-url URL, payment-sandbox settings webhook_url=URL, or in the order"
)


class RefusedLine(NamedTuple):
    """A request that belongs to no project."""

    method: str
    path: str
    status: int
    why: str


class ActivityLine(NamedTuple):
    """One line; ``data`` are its facts, for programs."""

    kind: str
    text: str
    data: Mapping[str, Any] = {}
    colour: str | None = None
    project_id: str | None = None
    is_raw: bool = False  # secrets are still to be masked


class Sentences:
    """Turns the events of one project into lines, each request before what it led to."""

    def __init__(self) -> None:
        self._held: dict[str, list[ActivityLine]] = {}  # by the request that is not yet printed
        self._actions: dict[str, str] = {}  # what somebody did, by the id of the action
        self._has_told = False  # that nobody is told

    def lines(self, event: Event, project: Project) -> Iterator[ActivityLine]:
        """The lines of an event, and those that waited for it."""
        make = _MAKERS.get(event.kind)
        if make is None:
            return
        cause = event.data.get("cause") or ""
        if event.kind == "status" and cause.startswith("request-") and len(self._held) < HELD_MAX:
            self._held.setdefault(cause, []).extend(make(self, event.data, project))
            return
        if event.kind == "webhook":
            yield from self._take(*self._held)
        yield from make(self, event.data, project)
        if event.kind == "request":
            yield from self._take(str(event.data["id"]))

    def _take(self, *causes: str) -> Iterator[ActivityLine]:
        for cause in causes:
            yield from self._held.pop(cause, ())

    def _request(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        status, path, unknown = data["status"], data["path"], data["unknown"]
        parts = [f"{data['method']} {path}  {status or 'connection cut'}", *_notes(data, path, unknown)]
        colour = BAD if status is None or status >= FAILING else NOTABLE if unknown else GOOD
        yield _line(project, "request", data, "  ".join(parts), colour)

    def _action(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        if len(self._actions) > ACTIONS_KEPT_MAX:
            self._actions.clear()
        self._actions[data["id"]] = f"{data['actor']}: {data['action']}"
        yield from ()

    def _status(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        before, after = data["before"], data["after"]
        if before is None and after == "new":
            return  # the line of the request says so
        taken = self._actions.get(data["cause"] or "")
        why = f"  ({taken})" if taken else ""
        change = f"{before} -> {after}" if before else f"is {after}"
        yield _line(project, "status", data, f"order {data['order_id']}  {change}{why}")
        if not self._has_told and _is_untold(project, data["order_id"]):
            self._has_told = True
            yield _line(
                project, "untold", {"at": data["at"], "order_id": data["order_id"]}, NOBODY_TOLD, NOTABLE
            )

    def _webhook(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        status, error, fault = data["status"], data["error"], data["fault"]
        answer = f"answered {status} in {data['duration_ms']:.0f} ms" if status else error
        parts = [
            f"webhook {data['order_status']} to {data['url']}",
            *((answer, data["warning"]) if fault is None else (f"{fault}, never sent",)),
            f"order {data['order_id']}",
        ]
        if data["next_at"] is not None:
            parts.append(f"attempt {data['number']}, the next one at {_short(data['next_at'])}")
        elif data["state"] == "failed":
            parts.append(f"attempt {data['number']} was the last one")
        colour = BAD if error or (status or 0) >= FAILING else NOTABLE if data["warning"] else GOOD
        colour = colour if fault is None else NOTABLE
        yield _line(project, "webhook", data, "  ".join(filter(None, parts)), colour)

    def _waiting(self, data: Mapping[str, Any], project: Project) -> Iterator[ActivityLine]:
        yield _line(project, "waiting", data, f"{data['label']}  order {data['order_id']}", NOTABLE)


_MAKERS: Final[Mapping[str, Callable[[Sentences, Mapping[str, Any], Project], Iterator[ActivityLine]]]] = {
    "request": Sentences._request,
    "action": Sentences._action,
    "status": Sentences._status,
    "webhook": Sentences._webhook,
    "waiting": Sentences._waiting,
}
KINDS: Final = frozenset(_MAKERS)
"""The kinds of events that have lines."""


def _line(
    project: Project, kind: str, data: Mapping[str, Any], text: str, colour: str | None = None
) -> ActivityLine:
    name = project.settings.name
    shown = "" if name == FIRST_NAME else f"[{name or project.project_id[:8]}] "
    text = f"{_short(data['at'])}  {shown}{text}"
    return ActivityLine(kind, text, data, colour, project.project_id)


def _is_untold(project: Project, order_id: str) -> bool:
    order, settings = project.epoch.store.order(order_id), project.settings
    has_own = order is not None and order.webhook_url is not None
    return not (has_own or settings.webhook_url or settings.forward_to)


def _notes(data: Mapping[str, Any], path: str, unknown: Sequence[str]) -> Iterator[str]:
    """What else there is to say about a request; each of its facts is masked when it is read, so once."""
    order_id, error, rule = data["order_id"], data["error"], data["rule"]
    if order_id and order_id not in path:
        yield f"order {order_id}"
    if error:
        yield error
    if rule:
        yield f"rule {rule}"
    if data["fault"]:
        yield "made by a fault"
    if unknown:
        yield f"ignored: {', '.join(unknown)}"
    yield from (f"warning: {warning}" for warning in data["warnings"])


def _short(moment: str) -> str:
    return moment[:19].replace("T", " ")


def refused_line(refused: RefusedLine) -> ActivityLine:
    """The line of a request that belongs to no project."""
    text = f"{refused.method} {refused.path}  {refused.status}  {refused.why}"
    return ActivityLine("refused", f"{'refused':19}  {text}", refused._asdict(), BAD, is_raw=True)


WAITING_MAX: Final = 1000  # projects with news, and refusals, that are not yet printed
TOGETHER_SECONDS: Final = 0.06  # a reader notices no delay, and each batch costs the requests a little
MANY_EVENTS: Final = EVENTS_STORED_MAX // 4  # of a project: they are printed at once, before any is dropped
STOP_SECONDS: Final = 0.5
MASKING: Final = Masking()

log = logging.getLogger(__name__)

Show = Callable[[ActivityLine], str]
"""How a line is printed."""


class _PrintedProject:
    """A project, and the number of its newest event that was printed. It does not keep the project alive."""

    def __init__(self, project: Project, activity: "Activity") -> None:
        self.project = ref(project)
        self.number = project.events.number
        self.sentences = Sentences()
        self.is_called = False
        self._activity = activity
        self._events = 0  # counted under the lock of the events
        self._events_taken = 0

    def call(self) -> None:
        """Note an event."""
        self._events += 1
        if not self.is_called:
            self.is_called = True
            self._activity.notice(self)
        elif self._events - self._events_taken == MANY_EVENTS:
            self._activity.hurry()

    def take(self) -> None:
        """Have the next event noticed again; those until now are about to be read."""
        self.is_called = False
        self._events_taken = self._events


class Activity:
    """Watches all projects of a server, and prints what happens on a thread of its own.

    If nobody reads what is printed, that thread waits and misses events; no request waits for it.
    """

    def __init__(
        self,
        show: Show,
        *,
        write: Write = to_standard_output,
        together_seconds: float = TOGETHER_SECONDS,
    ) -> None:
        """Print what happens within ``together_seconds`` with one call of ``write``."""
        self._show = show
        self._write = write
        self._together_seconds = together_seconds
        self._changed = Condition()
        self._news: deque[_PrintedProject] = deque()
        self._refused: deque[RefusedLine] = deque(maxlen=WAITING_MAX)
        self._refused_dropped = 0
        self._stopped = False
        self._is_urgent = False
        self._thread = Thread(target=self._run, name="activity", daemon=True)

    def opened(self, project: Project) -> None:
        """Print what happens in a project from now on."""
        project.events.listen(_PrintedProject(project, self).call)

    def refused(self, method: str, path: str, status: int, why: str) -> None:
        """Print a request that belongs to no project."""
        with self._changed:
            self._refused_dropped += len(self._refused) == WAITING_MAX
            self._refused.append(RefusedLine(method, path, status, why))
            self._is_urgent |= len(self._refused) == WAITING_MAX // 2
            self._changed.notify()

    def __enter__(self) -> "Activity":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to print."""
        start(self._thread)

    def stop(self) -> None:
        """Print what has happened until now, and end."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def notice(self, watched: _PrintedProject) -> None:
        """Print the news of a project soon."""
        with self._changed:
            if len(self._news) >= WAITING_MAX:  # nobody reads; it is called again at its next event
                self._news.popleft().is_called = False
            if not self._stopped:
                self._news.append(watched)
            self._is_urgent |= len(self._news) == WAITING_MAX // 2
            self._changed.notify()

    def hurry(self) -> None:
        """Print what has come now, before any of it is dropped."""
        with self._changed:
            self._is_urgent = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            while not self._is_over():
                pass
        except OSError:  # whoever read it has gone
            with self._changed:
                self._stopped = True
                self._news.clear()

    def _is_over(self) -> bool:
        """Wait for news and print it; True once there is no more to come."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._news or self._refused)
            # a busy server prints many lines at once, which costs its requests less
            self._changed.wait_for(lambda: self._stopped or self._is_urgent, self._together_seconds)
            is_over, self._is_urgent = self._stopped, False
            refused, dropped, news = list(self._refused), self._refused_dropped, list(self._news)
            self._refused.clear()
            self._news.clear()
            self._refused_dropped = 0
        texts = chain(self._shown(_missed(dropped)), self._shown(map(refused_line, refused)))
        put("".join(chain(texts, *map(self._of, news))), self._write)
        return is_over

    def _of(self, watched: _PrintedProject) -> Iterator[str]:
        """What is not yet printed of a project."""
        project = watched.project()
        if project is None:
            return
        watched.take()
        events, number = project.events, watched.number
        yield from self._shown(_missed(events.oldest_number() - number - 1))
        for stored in events.stored_beyond(number, KINDS):
            watched.number = stored.number
            try:
                event = stored.read_lazily(events.masking)
                yield "".join(self._shown(watched.sentences.lines(event, project)))
            except Exception:
                log.exception("the line of event %s in project %s failed", stored.number, project.project_id)

    def _shown(self, lines: Iterable[ActivityLine]) -> Iterator[str]:
        return (f"{self._show(line)}\n" for line in lines)


def _missed(count: int) -> Iterator[ActivityLine]:
    if count > 0:
        yield ActivityLine("missed", f"{count} events were too many to print", {"count": count})


def as_text(*, is_coloured: bool) -> Show:
    """Lines for people, in colour on a terminal."""

    def show(line: ActivityLine) -> str:
        text = printable(mask(line.text) if line.is_raw else line.text)
        return click.style(text, fg=line.colour) if is_coloured and line.colour else text

    return show


def as_json(line: ActivityLine) -> str:
    """A line as one JSON object."""
    shown: dict[str, Any] = {"level": "info", "message": line.text, "kind": line.kind}
    if line.project_id is not None:
        shown["project_id"] = line.project_id
    shown |= line.data
    return json.dumps(MASKING.record(shown) if line.is_raw else shown)
