"""The Flask application: both APIs, the payment pages, the dashboard and the documentation."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from flask import Flask, Response, current_app
from flask.testing import FlaskClient
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import RUNNING
from payment_sandbox.projects.registry import Registry
from payment_sandbox.serving import front
from payment_sandbox.serving.binding import bind, reachable_url, url_of
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Endpoint, Sandbox, Server
from payment_sandbox.ui.dashboard import dashboard
from payment_sandbox.ui.docs import docs, show_unknown_path
from payment_sandbox.ui.pages import pages
from payment_sandbox.ui.templates import template_loader
from payment_sandbox.web.auth import has_known_host
from payment_sandbox.web.bodies import STATE_BYTES_MAX
from payment_sandbox.web.call import EMPTY_SEGMENTS, EXTENSION, begin_call, current_call, end_call
from payment_sandbox.web.control import control
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import CONTROL_API, MERCHANT_API, NOT_FOUND, name_nearest_path
from payment_sandbox.web.merchant import answer_unrouted, merchant
from payment_sandbox.web.site import NO_SERVER, ServerContext, Site

_API_ROOT: Final = Pattern(r"\A/+(v1|control|health)(?:/+|\Z)")


def create_app(
    *,
    public_url: str | None = None,
    control_token: str | None = None,
    allow_hosts: Sequence[str] = (),
    webhook_url: str | None = None,
    deliver_to: Sequence[str] = (),
    clock: str = RUNNING,
    seed: int | None = None,
    scenario: str | None = None,
    scenario_folders: Sequence[str | Path] = (),
    project_files: Sequence[str | Path] = (),
    state: str | Path | None = None,
    max_projects: int | None = None,
) -> Flask:
    """Create the sandbox as a Flask application; the arguments are those of ``payment-sandbox serve``.

    Without arguments, it has one project, with the API key ``sandbox-key`` and a running clock. Webhooks are
    sent by a background thread, which starts with the first request. Without a ``public_url``, the address of
    the first request is used. Without a ``control_token``, only this machine may create projects. Use one
    process: several processes are several sandboxes.

    Raises:
        Invalid: the ``clock``, an address or a file is invalid, or a scenario is unknown.
        StateRefused: the ``state`` cannot be used.
    """
    sandbox = Sandbox(
        ServerConfig(
            webhook_url=webhook_url,
            deliver_to=deliver_to,
            clock=clock,
            seed=seed,
            scenario=scenario,
            scenario_folders=[Path(folder) for folder in scenario_folders],
            project_files=[Path(file) for file in project_files],
            state=state,
            max_projects=max_projects,
        )
    )
    app = build_app(
        sandbox.registry,
        public_url=(public_url or "").rstrip("/"),
        control_token=control_token,
        allow_hosts=allow_hosts,
    )
    sandbox.guard(app)
    app.before_request(sandbox.start)
    if public_url is None:
        app.before_request(use_first_address)
    return app


def use_first_address() -> None:
    """Use the address of the first request as the public URL, unless the host name may be a forged one."""
    call = current_call()
    if not call.site.public_url and has_known_host(call):
        call.site.change_public_url(call.request.root_url.rstrip("/"))


def build_app(
    registry: Registry,
    *,
    public_url: str = "",
    control_token: str | None = None,
    allow_hosts: Iterable[str] = (),
    server_context: ServerContext = NO_SERVER,
) -> Flask:
    """Build the application for some projects, without background work.

    Raises:
        Invalid: the path of the ``public_url`` is one of the application's own.
    """
    app = Flask("payment_sandbox", static_folder=None)
    app.ensure_sync = cache(app.ensure_sync)  # type: ignore[method-assign]  # it examines a view at each call
    app.url_map.strict_slashes = app.url_map.merge_slashes = False
    app.jinja_loader = template_loader
    app.test_client_class = SandboxTestClient
    site = Site(registry, public_url, control_token, allow_hosts, server_context)
    app.extensions[EXTENSION] = site

    app.before_request(begin_call)
    app.teardown_request(end_call)
    app.register_error_handler(Exception, answer_unknown_path)
    app.context_processor(lambda: {"base": site.base_path})

    app.register_blueprint(merchant)
    app.register_blueprint(control)
    app.register_blueprint(pages)
    app.register_blueprint(dashboard)
    app.register_blueprint(docs)

    _refuse_own_path(app, site)
    app.wsgi_app = NormalizedRequests(app.wsgi_app, site)  # type: ignore[method-assign]
    return app


def _refuse_own_path(app: Flask, site: Site) -> None:
    """Refuse a public URL whose path is one of the application's own.

    Raises:
        Invalid: says which path it is.
    """
    first = site.base_path.split("/")[1] if site.base_path else ""
    if first and first in {rule.rule.split("/")[1] for rule in app.url_map.iter_rules()}:
        message = (
            f"has the path {site.base_path}, but /{first} is a path of the sandbox itself; use another one"
        )
        raise Invalid([Violation("public_url", message)])


def answer_unknown_path(error: Exception) -> Response:
    """Answer a call that matches no route; the part of the application that its path belongs to decides."""
    call = current_call()
    if not isinstance(error, HTTPException):
        return answer_for(call, error)
    path = call.request.path
    if error.code == NOT_FOUND and not path.endswith("/"):  # the router sees a wrong method with a slash only
        methods = current_app.url_map.bind("").allowed_methods(f"{path}/")
        error = MethodNotAllowed(methods) if methods else error
    if path.startswith((MERCHANT_API, CONTROL_API)) and error.code == NOT_FOUND:
        error = name_nearest_path(error, path, [rule.rule for rule in current_app.url_map.iter_rules()])
    if path.startswith(MERCHANT_API):
        return answer_unrouted(call, error)
    page = show_unknown_path(call) if error.code == NOT_FOUND else None
    return page or answer_for(call, error)


class SandboxTestClient(FlaskClient):
    """Reads each response to its end, which sends its webhooks."""

    def open(self, *args: Any, **options: Any) -> Any:
        """Make a request."""
        return super().open(*args, **{"buffered": True, **options})


class NormalizedRequests:
    """Gives an application the path below that of the public URL, without empty segments (A64, A77).

    A chunked body is read here, because its length decides how it is answered.
    """

    def __init__(self, application: WSGIApplication, site: Site) -> None:
        self._application = application
        self._site = site

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        base, path = self._site.base_path, environ.get("PATH_INFO", "")
        if base:
            environ["SCRIPT_NAME"] = base
            if f"{path}/".startswith(f"{base}/"):  # some proxies keep it
                path = environ["PATH_INFO"] = path.removeprefix(base) or "/"
        if "//" in path:
            environ["PATH_INFO"] = _API_ROOT.sub(r"/\1/", path)
            if environ["PATH_INFO"] != path:
                environ[EMPTY_SEGMENTS] = True
        if environ.pop("HTTP_TRANSFER_ENCODING", None) is not None:
            body = environ["wsgi.input"].read(STATE_BYTES_MAX + 1)
            environ["wsgi.input"], environ["CONTENT_LENGTH"] = BytesIO(body), str(len(body))
        return self._application(environ, start_response)


def build(config: ServerConfig) -> Server:
    """Bind the port and build the sandbox; serving begins with ``Server.start``.

    Raises:
        PortInUse: the address is in use or does not belong to this host.
        Invalid: the ``clock``, an address or a file is invalid, or a scenario is unknown.
        StateRefused: the ``state`` cannot be used.
    """
    sandbox = Sandbox(config, creates_projects=config.listener is None)
    with ExitStack() as on_failure:
        on_failure.callback(sandbox.close)
        endpoint = _create_endpoint(config)
        on_failure.callback(endpoint.listener.stop)
        on_refused = config.observer.on_refused if config.observer is not None else None
        app = build_app(
            sandbox.registry,
            public_url=endpoint.url,
            control_token=config.control_token or None,
            allow_hosts=(config.host, *config.allow_hosts),
            server_context=ServerContext(on_refused, config.security.tls is not None),
        )
        sandbox.guard(app)
        on_failure.pop_all()
    return Server(app, sandbox, endpoint)


def _create_endpoint(config: ServerConfig) -> Endpoint:
    """Return the configured listener, or an HTTP server on a port."""
    listener, public_url = config.listener, (config.public_url or "").rstrip("/")
    if listener is not None:
        return Endpoint(listener, listener.url, public_url or listener.url, config.security)
    bound, scheme = bind(config.host, config.port), config.security.scheme
    port = bound.getsockname()[1]
    listener = front.HttpServer(bound, config.security.tls, config.limits)
    reachable = reachable_url(config.host, port, scheme)
    return Endpoint(listener, url_of(config.host, port, scheme), public_url or reachable, config.security)
