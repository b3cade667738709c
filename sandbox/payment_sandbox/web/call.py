"""A call: one request, from its placement on a thread or the event loop until its response is sent."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Event
from typing import Any, Final

from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.operations.agenda import clean_up_agenda
from payment_sandbox.operations.move_clock import catch_up
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.caller import Caller
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import SHOP
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.queued_deliveries import HeldDeliveries
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.web.event_stream import EventStream
from payment_sandbox.web.routes import ResolvedRoute
from payment_sandbox.web.site import Site

SAFE_METHODS: Final = ("GET", "HEAD")
COMMON_GROUP: Final = ""
"""The group of all calls without a project, because clients can invent any number of keys."""


class ConnectionCut(ConnectionError):
    """The sandbox cuts the connection, to simulate a broken network."""


class ClientConnection:
    """The connection to a client, provided by a server or a test."""

    __slots__ = ("caller", "headers")
    silence_seconds = 3.0
    """The real time before the connection of an unanswered call is cut."""
    repeat_seconds = 10.0
    """The real time that a call waits for another call with the same ``Idempotency-Key``."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]] | None = None) -> None:
        """``headers`` are the raw headers of the request, if the server knows them."""
        self.headers = headers
        self.caller = SHOP  # or a test, in the process of the sandbox

    def pause(self, group: str, seconds: float) -> None:
        """Pass real time in a call of this group, as a fault asks; nothing else waits for real time."""
        Event().wait(seconds)

    def cut(self) -> None:
        """Cut the connection.

        Raises:
            ConnectionCut: always; the server cuts the connection.
        """
        raise ConnectionCut

    def hang(self) -> None:
        """End an unanswered call after ``silence_seconds``."""
        self.cut()

    def take_over(self, project: Project, held: HeldDeliveries) -> bool:
        """Take over the held webhooks of a call; return False to send them after the response."""
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


class Call(Caller):
    """One request, with its project, route and notes."""

    def __init__(self, site: Site, request: Request, connection: ClientConnection) -> None:
        """Create a call; ``SandboxApp.route`` finds its route."""
        super().__init__()
        self.site = site
        self.request = request
        self.connection = connection
        self.is_from_test = request.environ.get("HTTP_SANDBOX_CALLER") == "test"
        """Whether a test makes the call, not the shop: no fault applies, and only a refusal is journaled."""
        # set by ``SandboxApp.route``
        self.has_empty_segments = False  # the path had empty segments before the resource
        self.route: ResolvedRoute | None = None  # face, view and facts; None: no route matches
        self.values: Mapping[str, str] = {}  # the values in the path
        self.routing_error: HTTPException | None = None  # set if no route matches
        self.may_wait = True  # unless the call runs on the server's event loop
        self.named: Project | None = None  # the project that the path or the key names
        self.group = COMMON_GROUP  # the id of that project, whose calls share the limits of this one
        # set by the middlewares and the view
        self.project: Project  # the project of the API key or the path, once it is known
        self.first_epoch: Epoch  # the project's epoch when the call began, which a reset replaces
        self.real_at: datetime | None = None  # the time of arrival
        self.query: Mapping[str, Any] = {}  # the parsed query of a control call
        self.body: Any = None  # the parsed body; None: not parsed yet
        self.notes = CallNotes()
        self.rendered: tuple[Order, str] | None = None  # the order in the response, and the body
        self.stream: EventStream | None = None  # the event stream, if the response is one

    @property
    def owner(self) -> Project | None:
        """The project of the call; None if it is unknown."""
        return getattr(self, "project", None)

    @property
    def masking(self) -> Masking:
        """The masking of the project's secrets, for errors that repeat parts of the request."""
        return self.owner.masking if self.owner is not None else Masking()

    def catch_up(self) -> None:
        """Run the due events of a running clock, if the call may wait, and tidy a long agenda.

        Reads go on if the events cannot be stored now: they remain due, and the read shows the stored state.
        """
        if self.may_wait:
            with suppress(*[NotStored] if self.request.method in SAFE_METHODS else []):
                catch_up(self.project)
        clean_up_agenda(self.project, self.project.epoch)

    def hold_webhooks(self) -> None:
        """Hold this call's webhooks until the response is sent (SET-59); call this before an edit."""
        project = self.project
        self.held = held = HeldDeliveries(project.epoch.outbox)
        held.precede_response = self.may_wait and project.settings.webhook_timing == BEFORE_RESPONSE
