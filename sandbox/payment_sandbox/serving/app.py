"""The WSGI application: both APIs, the payment pages and the documentation, mounted by path."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import Map, MapAdapter, Rule
from werkzeug.wrappers import Request, Response

from payment_sandbox.forms.base import nearest_word
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.loading import LOADING, lazy
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving.placing import find_named
from payment_sandbox.web import merchant
from payment_sandbox.web.call import Call, ClientConnection
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import APIS, CONTROL_API, MERCHANT_API, NO_PATH, NOT_FOUND
from payment_sandbox.web.faces import Face
from payment_sandbox.web.health import HEALTH_FACE
from payment_sandbox.web.merchant import answer_unrouted
from payment_sandbox.web.routes import ResolvedRoute
from payment_sandbox.web.site import NO_SERVER, ServerContext, Site

if TYPE_CHECKING:
    from payment_sandbox.ui import dashboard, docs, pages
    from payment_sandbox.web import control
else:
    dashboard = lazy("payment_sandbox.ui.dashboard")
    docs = lazy("payment_sandbox.ui.docs")
    pages = lazy("payment_sandbox.ui.pages")
    control = lazy("payment_sandbox.web.control")

GUESSED_LENGTH_MAX: Final = 200
HEALTH_PATH: Final = "/health"
_API_ROOT: Final = Pattern(r"\A/+(v1|control|health)(?:/+|\Z)")
_EMPTY_ID: Final = Pattern(r"\A/v1/orders/(?:/|[^/]+/(transaction)s//)")


def _normalize(path: str) -> str:
    """Remove empty segments before the resource of an API (A64)."""
    return _API_ROOT.sub(r"/\1/", path)


class Part:
    """A part of the application: the routes of some faces."""

    def __init__(self, faces: Iterable[Face]) -> None:
        # Every path works with and without its trailing slash, without a redirect (SET-01).
        self.url_map = Map(strict_slashes=False, merge_slashes=False)
        # like its ``bind``, which would load an encoding of host names
        self.adapter = MapAdapter(self.url_map, "sandbox", "/", "", "http", "/", "GET")
        self.routes: dict[str, ResolvedRoute] = {}
        for face in faces:
            self.add(face)

    def add(self, face: Face) -> None:
        """Register the routes of a face."""
        for endpoint, method, path, view, facts in face.group.routes:
            self.url_map.add(Rule(path, methods=[method], endpoint=endpoint))
            self.routes[endpoint] = ResolvedRoute(face.answer, face.admit, view, facts)

    def match(self, call: Call, path: str) -> None:
        """Find the route of a call."""
        empty = _EMPTY_ID.search(path) if "//" in path else None
        if empty is not None:
            call.routing_error = NotFound(f"the {empty[1] or 'order'} id is empty")
            return
        try:
            endpoint, call.values = self.adapter.match(path, call.request.method)
        except NotFound as error:  # refused later
            nearest = (
                self._nearest(path) if path.startswith(APIS) and len(path) <= GUESSED_LENGTH_MAX else None
            )
            call.routing_error = NotFound(f"{NO_PATH}; did you mean {nearest}?") if nearest else error
        except HTTPException as error:
            call.routing_error = error
        else:
            call.route = self.routes[endpoint]

    def _nearest(self, path: str) -> str | None:
        """Return the path of a route each part of which resembles that of a path; None if there is none."""
        sent = path.rstrip("/").split("/")
        for rule in self.url_map.iter_rules():
            words = rule.rule.rstrip("/").split("/")
            if len(words) == len(sent) and all(
                word.startswith("<") or word == each or nearest_word(each, [word])
                for word, each in zip(words, sent, strict=True)
            ):
                return re.sub("<(.+?)>", r"{\1}", rule.rule)
        return None


LoadFaces = Callable[[], Iterable[Face]]
"""A function that imports faces."""


class Mount(NamedTuple):
    """The faces of a part, and the prefixes of its paths."""

    prefixes: tuple[str, ...]
    load: LoadFaces


class SandboxApp:
    """Dispatches calls to its parts by path; a part is loaded at its first request."""

    site: Site

    def __init__(self, mounts: Sequence[Mount]) -> None:
        """The last mount has the HTML faces."""
        self._mounts = mounts
        self._parts: dict[Mount, Part] = {}

    @property
    def html(self) -> Part:
        """The part with the HTML faces."""
        return self._load(self._mounts[-1])

    def parts(self) -> list[Part]:
        """Return all parts."""
        return [self._load(mount) for mount in self._mounts]

    def _load(self, mount: Mount) -> Part:
        if mount not in self._parts:
            with LOADING:
                if mount not in self._parts:
                    self._parts[mount] = Part(mount.load())
        return self._parts[mount]

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request as a plain WSGI application (PEP 3333), without the sandbox's server."""
        return self.respond(self.route(environ, ClientConnection()))(environ, start_response)

    def route(self, environ: dict[str, Any], connection: ClientConnection) -> Call:
        """Create the call for a request, whose body may not have arrived yet."""
        sent = environ["PATH_INFO"]
        base = self.site.base_path  # some proxies keep it in front of the path (A77)
        if base and sent.startswith(f"{base}/") and self._is_known(sent.removeprefix(base)):
            sent = sent.removeprefix(base)
        environ["PATH_INFO"] = _normalize(sent) if "//" in sent else sent
        call = Call(self.site, Request(environ, populate_request=False), connection)
        call.has_empty_segments = environ["PATH_INFO"] != sent
        path = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")
        self._part_of(path).match(call, path)
        if call.route is not None:
            find_named(call)
        return call

    def _part_of(self, path: str) -> Part:
        for mount in self._mounts:
            if path.startswith(mount.prefixes):
                break
        return self._parts.get(mount) or self._load(mount)

    def _is_known(self, path: str) -> bool:
        return bool(self._part_of(_normalize(path)).adapter.allowed_methods(_normalize(path)))

    def admit(self, call: Call) -> Response | None:
        """Return the refusal of a call whose large body has not arrived; None if its sender may send it."""
        assert call.route is not None, "a route must match"
        with call:
            return call.route.admit(call)

    def respond(self, call: Call) -> Response:
        """Answer a call."""
        with call:
            try:
                response = call.route.answer(call) if call.route is not None else answer_unrouted_call(call)
            except BaseException:  # without a response, nothing else would release the webhooks
                if call.held is not None:
                    call.project.release(call.held)
                raise
            finally:
                if call.tracked is not None:
                    call.tracked.end()
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
    return docs.show_unknown_path(call) or answer_for(call, error)


def load_dashboard() -> tuple[Face, ...]:
    """Load the face of the dashboard."""
    return (dashboard.FACE,)


def make_app(
    registry: Registry,
    *,
    public_url: str,
    control_token: str | None = None,
    allow_hosts: Iterable[str] = (),
    server_context: ServerContext = NO_SERVER,
    load_optional_faces: LoadFaces = load_dashboard,
) -> SandboxApp:
    """Build the application.

    ``public_url`` is the server's URL for merchants and payers, with its scheme and without a trailing
    slash. If ``control_token`` is set, creating and listing projects requires it. ``allow_hosts`` are
    additional host names for calls to the control API. ``load_optional_faces`` loads optional faces, in
    addition to the APIs, the payment pages and the documentation.
    """
    app = SandboxApp(
        (
            Mount((MERCHANT_API,), lambda: (merchant.FACE,)),
            Mount((CONTROL_API,), lambda: control.FACES),
            Mount((HEALTH_PATH,), lambda: (HEALTH_FACE,)),
            Mount(("",), lambda: (pages.FACE, docs.FACE, docs.DESCRIPTION, *load_optional_faces())),
        )
    )
    registry.services.public_url = public_url
    app.site = Site(app, registry, control_token, allow_hosts, server_context)
    return app
