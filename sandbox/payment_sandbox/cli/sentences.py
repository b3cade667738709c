"""What happens in a project as lines that people can read while it happens."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.projects.events import Event
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.starting import FIRST_NAME

FAILING: Final = 400
GOOD: Final = "green"
BAD: Final = "red"
NOTABLE: Final = "yellow"
HELD_MAX: Final = 200
DEEDS_KEPT_MAX: Final = 1000
NOBODY_TOLD: Final = (
    "nobody was told: neither the order nor the project has a webhook_url; set one with "
    "serve --webhook-url URL, payment-sandbox settings webhook_url=URL, or in the order"
)


class Refused(NamedTuple):
    """A request that belongs to no project."""

    method: str
    path: str
    status: int
    why: str


class Line(NamedTuple):
    """One line; ``data`` are its facts, for programs."""

    kind: str
    text: str
    data: Mapping[str, Any] = {}
    colour: str | None = None
    is_raw: bool = False  # secrets are still to be masked


class Sentences:
    """Turns the events of one project into lines, each request before what it led to."""

    def __init__(self) -> None:
        self._held: dict[str, list[Line]] = {}  # by the request that is not yet printed
        self._deeds: dict[str, str] = {}  # what somebody did, by the id of the deed
        self._has_told = False  # that nobody is told

    def lines(self, event: Event, project: Project) -> Iterator[Line]:
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

    def _take(self, *causes: str) -> Iterator[Line]:
        for cause in causes:
            yield from self._held.pop(cause, ())

    def _request(self, data: Mapping[str, Any], project: Project) -> Iterator[Line]:
        status = data["status"]
        parts = [f"{data['method']} {data['path']}  {status or 'connection cut'}", *_notes(data)]
        colour = BAD if status is None or status >= FAILING else None
        yield _line(
            project, "request", data, "  ".join(parts), colour or (NOTABLE if data["unknown"] else GOOD)
        )

    def _deed(self, data: Mapping[str, Any], project: Project) -> Iterator[Line]:
        if len(self._deeds) > DEEDS_KEPT_MAX:
            self._deeds.clear()
        self._deeds[data["id"]] = f"{data['actor']}: {data['action']}"
        yield from ()

    def _status(self, data: Mapping[str, Any], project: Project) -> Iterator[Line]:
        before, after = data["before"], data["after"]
        if before is None and after == "new":
            return  # the line of the request says so
        deed = self._deeds.get(data["cause"] or "")
        why = f"  ({deed})" if deed else ""
        change = f"{before} -> {after}" if before else f"is {after}"
        yield _line(project, "status", data, f"order {data['order_id']}  {change}{why}")
        if not self._has_told and _is_untold(project, data["order_id"]):
            self._has_told = True
            yield _line(
                project, "untold", {"at": data["at"], "order_id": data["order_id"]}, NOBODY_TOLD, NOTABLE
            )

    def _webhook(self, data: Mapping[str, Any], project: Project) -> Iterator[Line]:
        status, error = data["status"], data["error"]
        answer = f"answered {status} in {data['duration_ms']:.0f} ms" if status else error
        parts = [
            f"webhook {data['order_status']} to {data['url']}",
            answer,
            data["warning"],
            f"order {data['order_id']}",
        ]
        if data["next_at"] is not None:
            parts.append(f"attempt {data['number']}, the next one at {_short(data['next_at'])}")
        elif data["state"] == "failed":
            parts.append(f"attempt {data['number']} was the last one")
        colour = BAD if error or (status or 0) >= FAILING else NOTABLE if data["warning"] else GOOD
        yield _line(project, "webhook", data, "  ".join(filter(None, parts)), colour)

    def _waiting(self, data: Mapping[str, Any], project: Project) -> Iterator[Line]:
        yield _line(project, "waiting", data, f"{data['label']}  order {data['order_id']}", NOTABLE)


_MAKERS: Final[Mapping[str, Callable[[Sentences, Mapping[str, Any], Project], Iterator[Line]]]] = {
    "request": Sentences._request,
    "deed": Sentences._deed,
    "status": Sentences._status,
    "webhook": Sentences._webhook,
    "waiting": Sentences._waiting,
}
KINDS: Final = frozenset(_MAKERS)
"""The kinds of events that have lines."""


def _line(project: Project, kind: str, data: Mapping[str, Any], text: str, colour: str | None = None) -> Line:
    name = project.settings.name
    shown = "" if name == FIRST_NAME else f"[{name or project.project_id[:8]}] "
    text = f"{_short(data['at'])}  {shown}{text}"
    return Line(kind, text, {"project_id": project.project_id, **data}, colour)


def _is_untold(project: Project, order_id: str) -> bool:
    order, settings = project.epoch.store.order(order_id), project.settings
    has_own = order is not None and order.webhook_url is not None
    return not (has_own or settings.webhook_url or settings.forward_to)


def _notes(data: Mapping[str, Any]) -> Iterator[str]:
    """What else there is to say about a request."""
    if data["order_id"] and data["order_id"] not in data["path"]:
        yield f"order {data['order_id']}"
    if data["error"]:
        yield data["error"]
    if data["rule"]:
        yield f"rule {data['rule']}"
    if data["fault"]:
        yield "made by a fault"
    if data["unknown"]:
        yield f"ignored: {', '.join(data['unknown'])}"
    yield from (f"warning: {warning}" for warning in data["warnings"])


def _short(moment: str) -> str:
    return moment[:19].replace("T", " ")


def refused_line(refused: Refused) -> Line:
    """The line of a request that belongs to no project."""
    text = f"{refused.method} {refused.path}  {refused.status}  {refused.why}"
    return Line("refused", f"{'refused':19}  {text}", refused._asdict(), BAD, is_raw=True)
