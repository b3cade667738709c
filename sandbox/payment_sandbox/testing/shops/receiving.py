"""Delivers webhooks to a merchant's application in this process."""

import inspect
import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from signal import SIGINT, default_int_handler, getsignal
from threading import current_thread, get_ident, main_thread
from traceback import TracebackException
from typing import Any, Final
from weakref import WeakSet
from wsgiref.types import WSGIApplication

from payment_sandbox.orders.webhooks import (
    ATTEMPT_BODY_BYTES,
    ReceiverAnswer,
    Undelivered,
    WebhookRequest,
    no_answer_within,
)
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.threads import signals_unblocked
from payment_sandbox.testing.environments import WsgiHead, build_environ, open_response, outside_flask
from payment_sandbox.testing.loops import CALLING_LOOP, TimeLimitExceeded
from payment_sandbox.testing.shops import asgi
from payment_sandbox.testing.shops.shop_requests import current_request, unwatch, watch
from payment_sandbox.testing.shops.tracebacks import (
    CURRENT_HANDLER,
    RunningHandler,
    add_note,
    describe_late_failure,
    describe_place,
    is_on_worker,
    is_shop_code,
    location_of_error,
    location_on_thread,
    running_handler,
    set_handler_thread,
    traceback_of,
)


class WsgiShop:
    """A merchant's WSGI application."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def answer(
        self, post: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float
    ) -> ReceiverAnswer:
        """Deliver one webhook; report the status with the first chunk; return the truncated answer.

        If a test on an event loop awaits the call behind the webhook, the application runs on that thread.
        """
        answers: list[ReceiverAnswer] = []
        loop = CALLING_LOOP.get()
        if loop is None:
            return self._answer(post, on_status)
        loop.call(lambda: answers.append(self._answer(post, on_status)))
        return answers[0]

    def _answer(self, post: WebhookRequest, on_status: Callable[[int], None]) -> ReceiverAnswer:
        environ = build_environ("POST", post.url, post.headers.items(), post.body)
        heads: list[WsgiHead] = []
        body, is_whole, failure = b"", False, None
        set_handler_thread()
        try:
            with open_response(self._application, environ, heads.append) as pieces:
                for piece in pieces:
                    body += piece
                    if body:  # an error before the first chunk can still become a 500, as in servers
                        on_status(_status_code(heads))
                    if len(body) >= ATTEMPT_BODY_BYTES:
                        break
                on_status(_status_code(heads))
                is_whole = True
        except Exception as error:  # the end of the response runs the shop's code, too
            if not is_whole:
                raise
            failure = describe_late_failure(error, _status_code(heads))
        location = next((value for name, value in heads[-1].headers if name.lower() == "location"), None)
        return ReceiverAnswer(body[:ATTEMPT_BODY_BYTES], failure, location=location)

    def close(self) -> None:
        """Do nothing."""


def _status_code(heads: list[WsgiHead]) -> int:
    if not heads:
        raise RuntimeError("the application did not call start_response")
    return heads[-1].code


ACCEPTED_APPLICATIONS: Final = (
    "a WSGI or ASGI application: a Flask, FastAPI, Starlette or Quart app, "
    "Django's get_wsgi_application() or get_asgi_application()"
)
WSGI_PARAMETERS: Final = 2
ASGI_PARAMETERS: Final = 3
NO_DEFAULT: Final = inspect.Parameter.empty
_KNOWN_WSGI_CLASSES: Final[WeakSet[type]] = WeakSet()  # classes of accepted applications
POSITIONAL_KINDS: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def wrap_application(application: Any) -> "WsgiShop | asgi.AsgiShop":
    """Wrap a WSGI or ASGI application.

    Raises:
        TypeError: the value is neither; the message describes the accepted values.
    """
    if type(application) in _KNOWN_WSGI_CLASSES:
        return WsgiShop(application)
    _refuse_others(application)
    call = getattr(application, "__call__", None)  # noqa: B004 (its kind matters, not its existence)
    count = _count_required_parameters(application)
    if (
        inspect.iscoroutinefunction(application)
        or inspect.iscoroutinefunction(call)
        or count == ASGI_PARAMETERS
    ):
        _warn_about_shared_router(application)
        return asgi.AsgiShop(application)
    if count not in (None, WSGI_PARAMETERS):
        hint = ": call it, if it creates the application" if count == 0 else ""
        raise TypeError(
            f"deliver_to takes {ACCEPTED_APPLICATIONS}; "
            f"not {_describe_value(application)}, which takes {count} arguments{hint}"
        )
    # reading a signature takes as long as a whole request
    if not inspect.isroutine(application) and not isinstance(application, partial):
        _KNOWN_WSGI_CLASSES.add(type(application))
    return WsgiShop(application)


SERVED_FRAMEWORKS: Final = {
    "aiohttp": "aiohttp",
    "tornado": "Tornado",
    "robyn": "Robyn",
    "sanic": "Sanic",
    "klein": "Klein",
    "twisted": "Twisted",
}
"""Frameworks with a server of their own, by package."""
INCLUDED_PARTS: Final = "it is only a part of an application; pass the application that includes it"
REMEDIES: Final = {
    "web.application.application": "pass the WSGI function of web.py, app.wsgifunc()",
    "pyramid.config.Configurator": "pass the application of Pyramid, config.make_wsgi_app()",
    "fastapi.routing.APIRouter": f"{INCLUDED_PARTS}, as in app.include_router(router)",
    "flask.blueprints.Blueprint": f"{INCLUDED_PARTS}, as in app.register_blueprint(blueprint)",
    "quart.blueprints.Blueprint": f"{INCLUDED_PARTS}, as in app.register_blueprint(blueprint)",
}
"""What to do with an object that has to do with a framework, by its class."""
CHERRYPY_REMEDY: Final = "pass the application of CherryPy, cherrypy.Application(root)"


def _refuse_others(application: Any) -> None:
    problem = _framework_problem(application)
    if isinstance(application, str):
        problem = f"the text {application!r}: import the application"
        if "://" in application:
            problem = (
                f"the address {application!r}. If a shop listens at this address, set "
                f"webhook_url={application!r} in the order, or in the project's settings"
            )
    elif not problem and inspect.isclass(application) and not hasattr(application, "__iter__"):  # PEP 3333
        problem = f"the class {application.__name__}{_suggest_application(application)}"
    elif not problem and not callable(application):
        problem = f"{_describe_value(application)}{_suggest_application(application)}"
    if problem:
        raise TypeError(f"deliver_to takes {ACCEPTED_APPLICATIONS}; not {problem}")


def _framework_problem(application: Any) -> str:
    for kind in type(application).__mro__:
        package, name = kind.__module__.partition(".")[0], f"{kind.__module__}.{kind.__qualname__}"
        remedy = REMEDIES.get(name)
        if package in SERVED_FRAMEWORKS:
            remedy = f"{SERVED_FRAMEWORKS[package]} answers only behind its own server: "
            remedy += "serve it on a port and set webhook_url to its address"
        elif package == "cherrypy" and not callable(application):
            remedy = CHERRYPY_REMEDY
        if remedy is not None:
            return f"{_describe_value(application)}: {remedy}"
    return ""


def _suggest_application(application: Any) -> str:
    if "cherrypy" in sys.modules and not inspect.ismodule(application):
        members = [inspect.getattr_static(application, name, None) for name in dir(application)]
        if any(inspect.getattr_static(each, "exposed", None) is True for each in (application, *members)):
            return f": {CHERRYPY_REMEDY}"
    names = [name for name in ("application", "app") if callable(getattr(application, name, None))]
    return f": pass its {names[0]}" if names else ""


def _warn_about_shared_router(application: Any) -> None:
    routing = sys.modules.get("blacksheep.server.routing")
    router = getattr(application, "router", None)
    owner = getattr(routing, "_apps_by_router_id", {}).get(id(router), {}).get("app", application)
    if routing is not None and owner is not application:
        warnings.warn(
            "this BlackSheep application shares its router with another application of this process, whose "
            "handlers may answer instead: create it with a router of its own, Application(router=Router())",
            stacklevel=4,
        )


def _describe_value(application: object) -> str:
    if inspect.ismodule(application):
        return f"the module {application.__name__}"
    name = getattr(application, "__qualname__", None)
    kind = f"{type(application).__module__}.{type(application).__qualname__}".removeprefix("builtins.")
    return f"the {kind} {name}" if name else f"a {kind}"


def _count_required_parameters(application: Any) -> int | None:
    """Return the number of required arguments; None if the number is unknown."""
    try:
        parameters = inspect.signature(application).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        return None
    return sum(each.kind in POSITIONAL_KINDS and each.default is NO_DEFAULT for each in parameters)


LATE_HANDLER_ADVICE: Final = (
    "Answer first, and do slow work afterwards. Ctrl-C ends a run that hangs, and pytest-timeout a test."
)
HOST_PATTERN: Final = re.compile(r"[\w.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")
OTHER_THREAD_NOTE: Final = (
    "The handler ran on the thread {own}, not on the test's ({tests}): the call that caused this webhook was "
    "made on another thread, or over a socket. The handler cannot see connections and transactions of the "
    "test. Make the call on the test's thread, with payment_sandbox.session or another socket-free client."
)
BEFORE_RESPONSE_NOTE: Final = (
    "The handler ran on the thread {own}, not on the test's ({tests}): the rehearsal delivered this webhook "
    "before the response to the call that caused it. The handler cannot see the test's connections "
    "and transactions."
)

WORKER_NOTE: Final = (
    "The framework ran the handler on a worker thread, as usual for handlers that are not async. The handler "
    "cannot see the test's connections and transactions, and continues after its timeout."
)


class ShopReceiver:
    """Delivers a project's webhooks to a merchant's application."""

    def __init__(
        self,
        application: Any,
        host: str | None = None,
        *,
        on_waiting_thread: bool = False,
        report: Callable[[str], None],
    ) -> None:
        """Prepare the application; ``host`` overrides the ``Host`` header of every request.

        With ``on_waiting_thread``, the application runs on the thread that waits for the webhook. ``report``
        shows a line to whoever waits for the test.

        Raises:
            TypeError: the application is neither WSGI nor ASGI.
            ValueError: ``host`` is not a host name, with or without a port.
        """
        if host is not None and not (isinstance(host, str) and HOST_PATTERN.fullmatch(host)):
            raise ValueError(f"host is {host!r}, but must be a host name such as shop.example:8443")
        self._shop = wrap_application(application)
        self.application = application
        watch(application)
        self._host = host
        self._on_waiting_thread = on_waiting_thread
        self._report = report
        self._tests_thread = current_thread()
        self._running: dict[int, RunningHandler] = {}  # by the thread that waits for the handler
        self.outcome: BaseException | None = None

    def __call__(
        self, request: WebhookRequest, on_status: Callable[[int], None], timeout_seconds: float
    ) -> ReceiverAnswer:
        """Deliver one webhook, and report its status.

        Raises:
            Undelivered: the handler failed, or an earlier handler has ended the test.
        """
        if self.outcome is not None:
            raise Undelivered("a handler has ended the test")
        thread_id = get_ident()
        outer = self._running.get(thread_id)  # the handler whose call caused this webhook
        note = BEFORE_RESPONSE_NOTE if current_request() is not None else OTHER_THREAD_NOTE
        try:
            with signals_unblocked(), running_handler(self, timeout_seconds) as running:
                self._running[thread_id] = running
                if (
                    self._on_waiting_thread
                    and CALLING_LOOP.get() is None
                    and current_thread() is not self._tests_thread
                ):
                    add_note(note.format(own=current_thread().name, tests=self._tests_thread.name))
                if self._host is not None:
                    request = request._replace(headers={**request.headers, "Host": self._host})
                return self._deliver(running, request, on_status)
        finally:
            del self._running[thread_id]
            if outer is not None:
                self._running[thread_id] = outer

    def locate_handler(self, thread_id: int) -> str | None:
        """Locate the handler that a thread waits for; return None if there is none."""
        running = self._running.get(thread_id)
        return None if running is None else _with_notes(running, location_on_thread(running.thread))

    def report_late_handler(self, location: str, timeout_seconds: float) -> None:
        """Show a line about a handler that has not answered in time, while the test waits for it."""
        self._report(f"{describe_place(location)} {no_answer_within(timeout_seconds)}. {LATE_HANDLER_ADVICE}")

    def _deliver(
        self, running: RunningHandler, post: WebhookRequest, on_status: Callable[[int], None]
    ) -> ReceiverAnswer:
        try:
            answer = _interruptible(outside_flask(self._shop.answer))(
                post, on_status, running.timeout_seconds
            )
        except TimeLimitExceeded as late:
            has_cause = late.__cause__ is not None
            location = location_of_error(late) if has_cause else location_on_thread(running.thread)
            failed = Undelivered(no_answer_within(running.timeout_seconds))
            failed.traceback = _with_notes(running, location, late)
            raise failed from late
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            if any(kind.__module__ == "_pytest.outcomes" for kind in type(error).__mro__):
                self.outcome = error
            failed = Undelivered(f"{type(error).__name__}: {error}")
            failed.traceback = _with_notes(running, traceback_of(error), error)
            raise failed from error
        if not running.logged_exceptions:
            return answer
        logged = running.logged_exceptions[-1]
        return answer._replace(traceback=_with_notes(running, traceback_of(logged), logged))

    def may_have_called(self) -> bool:
        """Return whether the caller may be a webhook handler, which must not wait for webhooks.

        The test's own thread counts only while it runs a handler; a handler counts only until its timeout.
        """
        thread_id = get_ident()
        running = CURRENT_HANDLER.get()
        if running is not None and running.is_for(self):
            return True
        others = self._running.copy()
        if thread_id in others or current_thread() is self._tests_thread:
            return thread_id in others
        if CALLING_LOOP.get() is not None:
            return False
        now = monotonic_seconds()
        return any(other.started_seconds + other.timeout_seconds > now for other in others.values())

    def raise_outcome(self) -> None:
        """Reraise a handler's outcome for the test, such as ``pytest.fail`` or a timeout of the test."""
        outcome, self.outcome = self.outcome, None
        if outcome is not None:
            raise outcome

    def close(self) -> None:
        """Close the event loops of the receiver."""
        unwatch(self.application)
        self._shop.close()


def _with_notes(running: RunningHandler, traceback: str, error: BaseException | None = None) -> str:
    """Append notes on the handler's thread or event loop to a traceback."""
    worker_note = WORKER_NOTE if error is not None and is_on_worker(error) else ""
    return "\n".join(filter(None, (traceback, *running.notes, worker_note)))


def _interruptible(call: Callable[..., ReceiverAnswer]) -> Callable[..., ReceiverAnswer]:
    """Let Ctrl-C end a call at once; in some runners, it would wait for the end of the test."""
    signals, ends_at_once = sys.modules.get("unittest.signals"), (None, default_int_handler)
    if signals is None or current_thread() is not main_thread() or getsignal(SIGINT) in ends_at_once:
        return call
    interruptible: Callable[..., ReceiverAnswer] = signals.removeHandler(call)
    return interruptible


def line_of_error(error: BaseException) -> str:
    """Name the innermost line of the shop that raised an error, such as `` (sales.py, line 7)``; or ""."""
    stack = TracebackException.from_exception(error).stack
    own = [frame for frame in stack if is_shop_code(frame.filename)]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
