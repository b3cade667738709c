"""The typed state of the application and of each request."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_bytes
from typing import Any, Final, NamedTuple, Protocol, cast

from flask import Flask, Request, current_app
from flask import request as current_request

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.asking import set_asked
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import Journal, set_cause
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.web.statistics import Statistics

KEY: Final = "payment_sandbox"
CUT_OFF: Final = "sandbox.cut_off"
"""The key in a WSGI environment of what cuts the connection; the server or the test puts it there."""

SILENCE: Final = "sandbox.silence"
"""The key in a WSGI environment of what never answers a client, in no time; a test sets it."""

KEEP_HELD: Final = "sandbox.keep_held"
"""The key in a WSGI environment of what takes over the webhooks that a request holds back; a test sets it."""

SENT_HEADERS: Final = "sandbox.headers"
"""The key in a WSGI environment of the request's headers as they were sent, if the server puts them there."""


OnRefused = Callable[[str, str, int, str], None]
"""Is told of requests that no project's journal has: method, path, status, and why they were refused."""


OK: Final = "ok"
DRAINING: Final = "draining"


class Member(Protocol):
    """One of the servers of a sandbox."""

    @property
    def url(self) -> str:
        """Where the other servers reach it."""
        ...

    @property
    def version(self) -> str:
        """Its version of the sandbox."""
        ...

    @property
    def is_draining(self) -> bool:
        """Whether it stops."""
        ...

    @property
    def projects(self) -> int:
        """How many projects it has."""
        ...


class Shared(Protocol):
    """What the servers of one sandbox share."""

    secret: str
    is_draining: bool
    """Whether this server gives its projects back, to stop."""

    @property
    def commits(self) -> int:
        """How many this server has made to the database."""
        ...

    def servers(self) -> Sequence["Member"]:
        """All servers that are alive, oldest first."""
        ...


class Around(NamedTuple):
    """The server around an application."""

    on_refused: OnRefused | None = None
    speaks_tls: bool = False  # itself; if not, an https address is that of a proxy
    shared: Shared | None = None  # with other servers
    statistics: Statistics | None = None


ALONE: Final = Around()


@dataclass(slots=True)
class Application:
    """What all requests of a server share; what belongs to a project or an epoch is in its slots."""

    registry: Registry
    public_url: str
    control_token: str | None
    hosts: frozenset[str]
    make_app: Any  # builds another application, such as the one that plays the examples
    around: Around = ALONE
    forgery_secret: bytes = field(default_factory=lambda: token_bytes(32))
    docs: dict[str, str] = field(default_factory=dict)  # rendered documentation pages, by name
    openapi: str | None = None  # the OpenAPI description, once built

    def __post_init__(self) -> None:
        """Forms that one server shows may be sent to another."""
        if self.around.shared is not None:
            self.forgery_secret = self.around.shared.secret.encode()

    def status(self) -> str:
        """Whether new clients should come to this server: ``ok`` or ``draining``."""
        shared = self.around.shared
        return DRAINING if shared is not None and shared.is_draining else OK

    def attach(self, app: Flask) -> None:
        """Store this on the Flask app."""
        app.extensions[KEY] = self


@dataclass(slots=True)
class Exchange:
    """What the sandbox knows about one request."""

    application: Application
    request: Request
    outer: "Exchange | None" = None  # of a request during which this one was made, in the same thread
    project: Project | None = None
    real_at: datetime | None = None  # when it arrived
    journal: Journal | None = None  # the one that gave it its id
    record_id: str | None = None  # of its journal entry
    held: tuple[Project, Epoch, int] | None = None  # where its webhooks are held, and their key
    body: Any = None
    has_body: bool = False  # the body has been parsed
    ignored: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str | None], ...] = ()  # of the ignored keys, each with the closest known one
    warnings: tuple[str, ...] = ()
    rule: str | None = None  # the rule that refused it
    violations: list[Violation] = field(default_factory=list)
    rehearsed: Fault | None = None  # what a rehearsal lets go wrong
    fault: Fault | None = None  # what goes wrong
    is_by_test: bool = False  # and not by the shop: no journal has it, and no fault applies to it
    is_cut: bool = False  # a fault cuts its connection
    cut_status: int | None = None  # of the lost response, if there was one
    order_id: str | None = None
    transaction_id: str | None = None  # of the attempt that it created
    rendered: tuple[Order, str, str] | None = None  # what is answered: an order, its ETag, and the body


_EXCHANGE: Final[ContextVar[Exchange | None]] = ContextVar("exchange", default=None)


def open_exchange() -> None:
    """Begin a request; a context variable takes a tenth of the time of Flask's proxies."""
    request = cast(Any, current_request)._get_current_object()
    _EXCHANGE.set(Exchange(application(cast(Any, current_app)), request, _EXCHANGE.get()))


def close_exchange(error: BaseException | None = None) -> None:
    """End a request; nothing of it is kept, and webhooks that it holds back are released in any case."""
    ended = _EXCHANGE.get()
    if ended is not None and ended.held is not None:  # it has failed before its response took them over
        owner, epoch, key = ended.held
        owner.release(epoch, key)
    outer = None if ended is None else ended.outer
    _EXCHANGE.set(outer)
    set_cause(None if outer is None else outer.record_id)
    set_asked(None)


def exchange() -> Exchange:
    """The state of this request."""
    current = _EXCHANGE.get()
    assert current is not None, "there is no request"
    return current


def current_exchange() -> Exchange | None:
    """The state of this request; None outside of one."""
    return _EXCHANGE.get()


def application(app: Flask | None = None) -> Application:
    """The state of this application."""
    current = _EXCHANGE.get()
    if app is None and current is not None:
        return current.application
    state: Application = (app or current_app).extensions[KEY]
    return state
