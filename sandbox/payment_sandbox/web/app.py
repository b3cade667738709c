"""The WSGI application: both APIs, the payment pages and the documentation."""

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from flask import Blueprint, Flask, Response
from jinja2 import FunctionLoader
from werkzeug.routing import Map, Rule

from payment_sandbox.loading import LOADING
from payment_sandbox.packaged import read_packaged
from payment_sandbox.projects.calling import as_caller
from payment_sandbox.projects.registry import Registry
from payment_sandbox.web import control, merchant
from payment_sandbox.web.answers.records import OpenApi
from payment_sandbox.web.call import Call, ClientConnection
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.errors import APIS, MERCHANT_API, NOT_FOUND
from payment_sandbox.web.faces import Face
from payment_sandbox.web.merchant import answer_unrouted
from payment_sandbox.web.placing import place
from payment_sandbox.web.routes import ResolvedRoute, required_facts, route
from payment_sandbox.web.site import NO_SERVER, ServerContext, Site


def _read_template(name: str) -> str | None:
    room = name.partition("/")[0]
    folder = room if room in ("dashboard", "docs") else "pages"
    try:
        return read_packaged(f"web/{folder}/templates/{name}").decode()
    except OSError:
        return None


class LazyRoute(Rule):
    """A route that compiles its URL builders on first use, which halves the time to create an application.

    If Werkzeug ever renames ``_compile_builder``, this class has no effect.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        builders: list[Any] = []
        compile_builder = super()._compile_builder

        def build(rule: Rule, **values: Any) -> tuple[str, str]:
            if not builders:
                with LOADING:
                    builders.append(compile_builder(append_unknown).__get__(rule, None))
            result: tuple[str, str] = builders[0](**values)
            return result

        return build


class SandboxFlask(Flask):
    """A Flask app with its own call handling; only routes and templates are Flask's.

    There is no automatic OPTIONS, because there is no CORS, and an undeclared method is a 405.
    """

    url_rule_class = LazyRoute
    site: Site

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # Every path works with and without its trailing slash, without a redirect (SET-01).
        self.url_map = Map(strict_slashes=False, merge_slashes=False)
        self._faces: list[Face] = []
        self._routes: dict[str, ResolvedRoute] = {}
        self._load_deferred_faces: LoadFaces | None = None

    def create_global_jinja_loader(self) -> FunctionLoader:  # type: ignore[override]
        """Return a loader that finds the templates of all faces in this package."""
        return FunctionLoader(_read_template)

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

    def add(self, face: Face) -> None:
        """Register the routes of a face."""
        self._faces.append(face)
        self.register_blueprint(face.blueprint)
        for rule in self.url_map.iter_rules():
            if rule.endpoint not in self._routes:
                view = cast(Callable[..., Response], self.view_functions[rule.endpoint])
                self._routes[rule.endpoint] = ResolvedRoute(face.answer, view, required_facts(self, rule))

    def defer(self, load: "LoadFaces") -> None:
        """Defer faces until the first request without a matching route."""
        self._load_deferred_faces = load

    def register_deferred_faces(self) -> "SandboxFlask":
        """Register the deferred faces now; calls on other threads see all of their routes or none."""
        with LOADING:
            if self._load_deferred_faces is None:
                return self
            complete = SandboxFlask(self.import_name, static_folder=None)
            for face in (*self._faces, *self._load_deferred_faces()):
                complete.add(face)
            self.blueprints, self.view_functions = complete.blueprints, complete.view_functions
            self.jinja_env = complete.jinja_env  # it includes the filters of all faces
            self._faces, self.url_map = complete._faces, complete.url_map
            self._routes.update(complete._routes)  # updated in place, before the adapter returns them
            self.site.adapter = complete.url_map.bind("sandbox")
            self._load_deferred_faces = None
        return self

    def wsgi_app(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request as a plain WSGI application (PEP 3333), without the sandbox's server."""
        length = environ.get("CONTENT_LENGTH") or ""
        call = self.place(environ, int(length) if length.isdecimal() else 0, ClientConnection())
        return self.respond(call)(environ, start_response)

    def place(self, environ: dict[str, Any], length: int, connection: ClientConnection) -> Call:
        """Create the call for a request, and decide where it runs; ``length`` is the length of its body."""
        adapter = self.site.adapter
        call = place(self.site, self._routes, environ, length, connection)
        if call.routing_error is None or call.request.path.startswith(APIS):
            return call
        self.register_deferred_faces()
        is_unchanged = self.site.adapter is adapter
        return call if is_unchanged else place(self.site, self._routes, environ, length, connection)

    def respond(self, call: Call) -> Response:
        """Answer a call."""
        with as_caller(call):
            response = call.route.answer(call) if call.route is not None else answer_unrouted_call(call)
        call.request.close()  # this also closes a form's uploaded files
        return response


def answer_unrouted_call(call: Call) -> Response:
    """Answer a call that matches no route."""
    error = call.routing_error
    assert error is not None, "no route matches"
    if call.request.path.startswith(MERCHANT_API):
        return answer_unrouted(call, answer_for(call, error))
    if error.code != NOT_FOUND:
        return answer_for(call, error)
    with LOADING:
        from payment_sandbox.web.docs import show_unknown_path  # deferred, for a faster start

    return show_unknown_path(call) or answer_for(call, error)


description = Blueprint("description", __name__)


@route(description, "GET", "/openapi.json", answers=OpenApi, errors=(), slow=True)
def get_openapi(call: Call) -> Response:
    """Get the OpenAPI 3.1 description of both APIs."""
    with LOADING:
        from payment_sandbox.web.openapi import openapi_text  # deferred, for a faster start

    return Response(openapi_text(call.site), mimetype="application/json")


DESCRIPTION: Final = Face(description, (), answer_for)
LoadFaces = Callable[[], Iterable[Face]]
"""A function that imports faces."""


def load_dashboard() -> tuple[Face, ...]:
    """Load the face of the dashboard."""
    with LOADING:
        from payment_sandbox.web.dashboard import FACE

    return (FACE,)


def load_pages() -> tuple[Face, ...]:
    """Load the HTML faces and the description, which API calls do not need."""
    with LOADING:
        from payment_sandbox.web.docs import FACE as DOCUMENTATION
        from payment_sandbox.web.pages import FACE as PAGES

    return (PAGES, DOCUMENTATION, DESCRIPTION)


def make_app(
    registry: Registry,
    *,
    public_url: str,
    control_token: str | None = None,
    allow_hosts: Iterable[str] = (),
    server_context: ServerContext = NO_SERVER,
    load_optional_faces: LoadFaces = load_dashboard,
) -> SandboxFlask:
    """Build the application.

    ``public_url`` is the server's URL for merchants and payers, with its scheme and without a trailing
    slash. If ``control_token`` is set, creating and listing projects requires it. ``allow_hosts`` are
    additional host names for calls to the control API. ``load_optional_faces`` loads optional faces, in
    addition to the APIs, the payment pages and the documentation. Only the APIs are loaded immediately; see
    ``SandboxFlask.register_deferred_faces``.
    """
    app = SandboxFlask("payment_sandbox", static_folder=None)
    registry.services.public_url = public_url
    app.site = Site(app, registry, control_token, allow_hosts, server_context)
    for face in (merchant.FACE, *control.FACES):
        app.add(face)
    app.defer(lambda: (*load_pages(), *load_optional_faces()))
    return app
