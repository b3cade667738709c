"""Where a request runs: decided once, before the application is called.

A request that can neither wait nor take long runs on the server's event loop, all others on threads. Few
threads run at once; one that is about to wait says so, and then another one may run meanwhile. What decides
are the facts of the route, the state of the project and the length of the body. The project also is whose
share of the server the request uses.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter

from payment_sandbox.operations.agenda import tidy
from payment_sandbox.operations.clock import catch_up, must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import digest
from payment_sandbox.projects.rehearsal import NO_REHEARSAL
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.web.auth import api_key_in
from payment_sandbox.web.carried import application, exchange
from payment_sandbox.web.errors import APIS, RequestRefused
from payment_sandbox.web.routes import Facts, facts_of

if TYPE_CHECKING:
    from flask import Flask

ON_EVENT_LOOP: Final = "sandbox.on_event_loop"
"""Set in a request's WSGI environment while it runs on the event loop."""

BEGIN_WAITING: Final = "sandbox.begin_waiting"
"""In the environment of a request on a thread: what to call before it waits; False if too many wait."""

ROUTED: Final = "sandbox.routed"
"""In the environment of a request that was placed: its route."""

AT_ONCE_BYTES_MAX: Final = 1 << 13  # reading a larger body takes long
TOO_MANY_WAIT: Final = "too many calls wait already; try again when some have ended"


OF_NO_PROJECT: Final = ""
"""The share of all requests without a project that this server has: a client can make up any number of keys.

A project that another server had, or none, gets a share of its own when this one has loaded it.
"""


class Placement(NamedTuple):
    """Where a request runs, and whose share of the server it uses: that of a project, or the common one."""

    on_thread: bool
    share: str = OF_NO_PROJECT


class Routed(MapAdapter):
    """The route of one request, which is looked for only once."""

    _result: Any = None

    def match(self, *arguments: Any, **options: Any) -> Any:
        """The rule and the values in the path.

        Raises:
            HTTPException: there is none.
        """
        if self._result is None:
            try:
                self._result = super().match(*arguments, **options)
            except HTTPException as nothing:
                self._result = nothing
        if isinstance(self._result, HTTPException):
            raise self._result
        return self._result


def routed(app: "Flask", environ: Mapping[str, Any]) -> Routed:
    """The route of a request, by path and method, whatever host name it was sent to."""
    route: Routed | None = environ.get(ROUTED)
    return route or Routed(
        app.url_map,
        "sandbox",
        f"{environ.get('SCRIPT_NAME', '').rstrip('/')}/",
        "",
        "http",
        environ["PATH_INFO"].encode("latin-1").decode(errors="replace"),
        environ["REQUEST_METHOD"],
        environ.get("QUERY_STRING", ""),
    )


def place(app: "Flask", environ: dict[str, Any], length: int) -> Placement:
    """Decide where a request runs; ``length`` is that of its body."""
    route = environ[ROUTED] = routed(app, environ)
    try:
        rule, _ = route.match(return_rule=True)
    except HTTPException:  # it is refused
        return Placement(on_thread=False)
    facts = facts_of(app, rule.endpoint) or NO_FACTS
    registry = application(app).registry
    project = _used(registry.local(subject_of(app, environ) or ""))
    share = project.project_id if project is not None else OF_NO_PROJECT
    if facts.streams:
        return Placement(on_thread=registry.is_shared, share=share)
    takes_long = facts.slow or facts.waits or length > AT_ONCE_BYTES_MAX
    return Placement(takes_long or registry.is_shared or _may_wait(project), share)


NO_FACTS: Final = Facts()


def subject_of(app: "Flask", environ: dict[str, Any]) -> str | None:
    """The id of the project in a request's path, or the digest of its API key; None: about no project."""
    route = environ[ROUTED] = routed(app, environ)
    try:
        _, values = route.match(return_rule=True)
    except HTTPException:
        values = {}
    if "project_id" in values:
        return str(values["project_id"])
    key = api_key_in(environ.get("HTTP_AUTHORIZATION"))
    return digest(key) if key and environ["PATH_INFO"].startswith(APIS) else None


def _used(project: Project | None) -> Project | None:
    """A project, after noting that it is used now."""
    if project is not None:
        project.used_at_seconds = project.services.real.monotonic_seconds()
    return project


def _may_wait(project: Project | None) -> bool:
    """Whether a call of a project may wait or take long, whatever it asks for."""
    if project is None:
        return False
    epoch = project.epoch
    return (
        epoch.store.is_durable
        or epoch.rehearsal is not NO_REHEARSAL
        or project.settings.webhook_timing == BEFORE_RESPONSE
        or bool(epoch.state.faults.faults or epoch.state.scenario_faults.faults)
        or must_catch_up(project)
    )


def may_wait() -> bool:
    """Whether this request may wait; one on the event loop was placed before there was a reason to."""
    return ON_EVENT_LOOP not in exchange().request.environ


def begin_waiting() -> None:
    """Let another request run while this one waits, for whatever it likes.

    Raises:
        RequestRefused: 503, too many requests wait already.
    """
    assert may_wait(), "this route states in its facts that it does not wait"
    begin = exchange().request.environ.get(BEGIN_WAITING)
    if begin is not None and not begin():
        raise RequestRefused(503, TOO_MANY_WAIT, {"Retry-After": "1"})


def catch_up_first(project: Project) -> None:
    """Run what is due on a running clock before the request, and keep the agenda short."""
    if may_wait():
        catch_up(project)
    tidy(project, project.epoch)
