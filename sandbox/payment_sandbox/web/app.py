"""The WSGI application: both APIs, the payment pages and the documentation."""

from collections.abc import Callable, Iterable
from typing import Any

from flask import Blueprint, Flask, Request, Response
from flask.sessions import NullSession, SessionInterface
from werkzeug.routing import Map, MapAdapter, Rule

from payment_sandbox.loading import LOADING
from payment_sandbox.projects.registry import Registry
from payment_sandbox.web import errors
from payment_sandbox.web.answers.records import OpenApi
from payment_sandbox.web.auth import known_hosts
from payment_sandbox.web.carried import ALONE, Application, Around, application, close_exchange, open_exchange
from payment_sandbox.web.control import CONTROL
from payment_sandbox.web.dashboard import dashboard
from payment_sandbox.web.docs import docs, show_nothing
from payment_sandbox.web.merchant import api, keep_unrouted
from payment_sandbox.web.pages import pages
from payment_sandbox.web.placing import Placement, begin_waiting, place, routed
from payment_sandbox.web.routes import current_facts, require_facts, route


class LazyRoute(Rule):
    """A route whose URL builders are compiled on first use, which halves the time to create an application.

    If Werkzeug ever renames ``_compile_builder``, this class has no effect.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compiled: list[Any] = []
        compile_now = super()._compile_builder

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            if not compiled:
                with LOADING:
                    compiled.append(compile_now(append_unknown).__get__(rule, None))
            built: tuple[str, str] = compiled[0](**values)
            return built

        return build


class NoSessions(SessionInterface):
    """The sandbox stores nothing in sessions, so all requests share an empty one."""

    _empty = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        """The empty session."""
        return self._empty


class SandboxFlask(Flask):
    """A Flask app without what the sandbox does not use, such as sessions, coroutines and subdomains.

    It has no automatic OPTIONS: there is no CORS, and an undeclared method is a 405.
    """

    url_rule_class = LazyRoute
    session_interface = NoSessions()

    def add_url_rule(
        self,
        rule: str,
        endpoint: str | None = None,
        view_func: Any = None,
        provide_automatic_options: bool | None = None,
        **options: Any,
    ) -> None:
        """Add a route without automatic OPTIONS; Flask before 3.1 has no app-wide setting for this."""
        super().add_url_rule(rule, endpoint, view_func, bool(provide_automatic_options), **options)

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Routes by path and method, whatever host name the request was sent to."""
        if request is None:
            return None
        return routed(self, request.environ)

    def place(self, environ: dict[str, Any], length: int) -> Placement:
        """Where a request runs; ``length`` is that of its body."""
        return place(self, environ, length)

    def ensure_sync(self, func: Any) -> Any:
        """Nothing here is a coroutine."""
        return func


def make_app(
    registry: Registry,
    *,
    public_url: str,
    control_token: str | None = None,
    allow_hosts: Iterable[str] = (),
    around: Around = ALONE,
) -> SandboxFlask:
    """Build the application.

    ``public_url`` is where merchants and payers reach the server, with its scheme and without a trailing
    slash. If ``control_token`` is set, creating and listing projects requires it. ``allow_hosts`` are
    further host names under which the control API may be called.
    """
    app = SandboxFlask("payment_sandbox", static_folder=None)
    # Every path works with and without its trailing slash, without a redirect (SET-01).
    app.url_map = Map(strict_slashes=False, merge_slashes=False)
    hosts = known_hosts(public_url, allow_hosts)
    state = Application(registry, public_url, control_token, hosts, make_app, around)
    state.attach(app)
    errors.install(app, keep_unrouted, show_nothing)
    app.before_request(open_exchange)
    app.before_request(wait_if_route_waits)
    app.teardown_request(close_exchange)
    for face in (api, *CONTROL, pages, docs, dashboard, description):
        app.register_blueprint(face)
    require_facts(app)
    return app


def wait_if_route_waits() -> None:
    """Let other requests run while this one waits."""
    facts = current_facts()
    if facts is not None and facts.waits:
        begin_waiting()


def move(app: Flask, public_url: str) -> None:
    """Change where merchants and payers reach the server; addresses given out before stay as they are."""
    state = application(app)
    state.public_url = public_url
    state.hosts |= known_hosts(public_url, ())


description = Blueprint("description", __name__)


@route(description, "GET", "/openapi.json", answers=OpenApi, errors=(), slow=True)
def get_openapi() -> Response:
    """Get the OpenAPI 3.1 description of both APIs."""
    with LOADING:
        from payment_sandbox.web.openapi import described  # imported late: faster startup

    return Response(described(), mimetype="application/json")
