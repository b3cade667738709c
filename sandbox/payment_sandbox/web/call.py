"""A call: one request with its project, from the first hook of the application to the last."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from threading import Event
from typing import Any, Final

from flask import Request, g
from flask.globals import request_ctx

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.operations.advance import catch_up
from payment_sandbox.operations.agenda import clean_up_agenda
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.caller import Caller
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import SHOP
from payment_sandbox.projects.outbox import HeldDeliveries
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.projects.store import NotStored
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.web.event_stream import EventStream
from payment_sandbox.web.routes import Facts
from payment_sandbox.web.site import Site

SAFE_METHODS: Final = ("GET", "HEAD")
EXTENSION: Final = "payment_sandbox"
"""The name of the ``Site`` among the extensions of an application."""
CONNECTION: Final = "payment_sandbox.connection"
"""The variable of the WSGI environment with the connection of the client, if the server knows it."""
EMPTY_SEGMENTS: Final = "payment_sandbox.empty_segments"
"""The variable of the WSGI environment that says that empty segments of the path were removed."""


class ConnectionCut(ConnectionError):
    """The sandbox cuts the connection, to simulate a broken network: the iterable of a response raises it."""


class ClientConnection:
    """The connection to a client, as a plain WSGI server has it; our own servers and tests know more."""

    headers: Iterable[tuple[bytes, bytes]] | None = None
    """The raw headers of the request, if the server knows them."""
    caller = SHOP
    """Who makes the call; a test may make it, in the process of the sandbox."""
    may_wait = True
    """Whether the call may wait; it may not on the event loop of a server."""
    repeat_seconds = 10.0
    """The real time that a call waits for another call with the same ``Idempotency-Key``."""

    def pause(self, seconds: float) -> None:
        """Pass real time, as a fault asks; nothing else waits for real time."""
        Event().wait(seconds)

    def take_over(self, project: Project, held: HeldDeliveries) -> bool:
        """Take over the held webhooks of a call; return False to send them after the response."""
        return False

    def watch(self, stream: EventStream) -> bool:
        """Take over an event stream; return False to send it as the response."""
        return False


@dataclass(slots=True)
class CallNotes:
    """Notes on a call for the headers of the response and the journal."""

    ignored: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str | None], ...] = ()  # the ignored keys, each with a suggestion
    warnings: tuple[str, ...] = ()
    violations: Sequence[Violation] = ()
    rule: str | None = None  # the rule that a refused call broke
    order: Order | None = None  # the version in the response
    order_id: str | None = None
    transaction_id: str | None = None  # the id of a created attempt
    fault: Fault | None = None  # the applied fault
    is_lost: bool = False  # the client does not receive the real response
    is_cut: bool = False  # the connection is cut
    lost_status: int | None = None  # the status of the lost response; None if none was lost


NO_VALUES: Final[Mapping[str, str]] = {}


class Call(Caller):
    """One request, with its project, route and notes."""

    def __init__(
        self,
        site: Site,
        request: Request,
        connection: ClientConnection,
        facts: Facts | None = None,
        values: Mapping[str, str] = NO_VALUES,
    ) -> None:
        """``facts`` are those of the route, None if there is none; ``values`` are those in its path."""
        super().__init__()
        self.site = site
        self.request = request
        self.connection = connection
        self.is_from_test = request.environ.get("HTTP_SANDBOX_CALLER") == "test"
        """Whether a test makes the call, not the shop: no fault applies, and only a refusal is journaled."""
        self.facts = facts
        self.values = values
        self.may_wait = connection.may_wait
        # set by the hooks and the view
        self.project: Project  # the project of the API key or the path, once it is known
        self.first_epoch: Epoch  # the project's epoch when the call began, which a reset replaces
        self.real_at: datetime | None = None  # the time of arrival
        self.query: Mapping[str, Any] = {}  # the parsed query of a control call
        self.body: Any = None  # the parsed body; None: not parsed yet
        self.notes = CallNotes()
        self.rendered: tuple[Order, str] | None = None  # the order in the response, and the body
        self.is_fault_begun = False
        self.outer_call: Call | None = None  # the call of this application around this one

    @property
    def owner(self) -> Project | None:
        """The project of the call; None if it is unknown."""
        return getattr(self, "project", None)

    @property
    def masking(self) -> Masking:
        """The masking of the project's secrets, for errors that repeat parts of the request."""
        return self.owner.masking if self.owner is not None else Masking()

    def catch_up(self) -> None:
        """Run the due events of a running clock, if the call may wait; tidy a long agenda before changes.

        Reads go on if the events cannot be stored now: they remain due, and the read shows the stored state.
        """
        only_reads = self.request.method in SAFE_METHODS
        if self.may_wait:
            with suppress(*[NotStored] if only_reads else []):
                catch_up(self.project)
        epoch = self.project.epoch
        if not only_reads and len(epoch.timeline) >= epoch.cleanup_length:
            clean_up_agenda(self.project, epoch)

    def hold_webhooks(self) -> None:
        """Hold this call's webhooks until the response is sent (SET-59); call this before an edit."""
        project = self.project
        self.held = held = HeldDeliveries(project.epoch.outbox)
        held.precede_response = self.may_wait and project.settings.webhook_timing == BEFORE_RESPONSE


def begin_call() -> None:
    """Begin the call of the current request; a call inside one of the same application shares its ``g``."""
    context = request_ctx._get_current_object()  # type: ignore[attr-defined]
    app, request, noted = context.app, context.request, g._get_current_object()
    view = app.view_functions[request.endpoint] if request.endpoint is not None else None
    call = Call(
        app.extensions[EXTENSION],
        request,
        request.environ.get(CONNECTION) or ClientConnection(),
        getattr(view, "facts", None),
        request.view_args or NO_VALUES,
    )
    call.outer_call = noted.get("call")
    noted.call = call
    call.__enter__()


def end_call(error: BaseException | None) -> None:
    """End the call of the current request; without a response, nothing else releases its webhooks."""
    call: Call | None = g.pop("call", None)
    if call is None:  # a context without a request, such as that of ``app.test_request_context``
        return
    if call.outer_call is not None:
        g.call = call.outer_call
    call.__exit__()
    if call.tracked is not None:
        call.tracked.end()
    if error is not None and call.held is not None:
        call.project.release(call.held)


def current_call() -> Call:
    """Return the call of the current request; hooks begin with it."""
    return g.call  # type: ignore[no-any-return]


@lru_cache(maxsize=256)
def variable_of(header: str) -> str | None:
    """Return the WSGI variable of a header; None if the header has no variable of its own."""
    name = header.upper().replace("-", "_")
    if "_" in header or name in ("TRANSFER_ENCODING", "UPGRADE"):  # the body is decoded; nothing is upgraded
        return None
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
