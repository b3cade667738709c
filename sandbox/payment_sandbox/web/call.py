"""A call: one request, from the moment when it is placed until its response is sent."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from flask import Response
from werkzeug import Request
from werkzeug.exceptions import HTTPException

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.calling import Caller
from payment_sandbox.projects.outbox import Held
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.scenarios.effects import Fault
from payment_sandbox.web.errors import RequestRefused
from payment_sandbox.web.event_stream import EventStream
from payment_sandbox.web.routes import Routed
from payment_sandbox.web.site import Site

TOO_MANY_WAIT: Final = "too many calls wait already; try again when some have ended"
OF_NO_PROJECT: Final = ""
"""The share of all calls without a project that this server has: a client can make up any number of keys.

A project that another server had, or none, gets a share of its own when this one has loaded it.
"""


class ConnectionCut(Exception):
    """The sandbox cuts the connection, to simulate a broken network."""


class Line:
    """The line to a client, as a server provides it; a test provides its own."""

    __slots__ = ("headers", "may_wait")
    silence_seconds = 3.0
    """How long a call without an answer takes before its connection is cut."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]] | None = None) -> None:
        """``headers`` are those of the request as it was sent, if the server knows them."""
        self.headers = headers
        self.may_wait = True  # not on the event loop

    def begin_waiting(self) -> bool:
        """Let other calls run while this one waits; False if too many wait."""
        return True

    def cut_off(self) -> None:
        """Cut the connection.

        Raises:
            ConnectionCut: the server does it.
        """
        raise ConnectionCut

    def never_answer(self) -> None:
        """End a call that was never answered, after ``silence_seconds``."""
        self.cut_off()

    def keep(self, project: Project, held: Held) -> bool:
        """Take over the webhooks that a call holds back; False if they go after the response."""
        return False


class CallNotes:
    """What the headers of the response and the journal say about a call, besides the call itself."""

    __slots__ = (
        "fault",
        "ignored",
        "is_cut",
        "is_lost",
        "lost_status",
        "order_id",
        "rule",
        "transaction_id",
        "unknown",
        "violations",
        "warnings",
    )

    def __init__(self) -> None:
        self.ignored: tuple[str, ...] = ()
        self.unknown: tuple[tuple[str, str | None], ...] = ()  # ignored keys, each with the closest known one
        self.warnings: tuple[str, ...] = ()
        self.violations: Sequence[Violation] = ()
        self.rule: str | None = None  # the rule that refused it
        self.order_id: str | None = None
        self.transaction_id: str | None = None  # of the attempt that it created
        self.fault: Fault | None = None  # what goes wrong
        self.is_lost = False  # the client gets something else than the response to what was done
        self.is_cut = False  # and its connection is cut
        self.lost_status: int | None = None  # of the response that was lost with it, if there was one


class Call(Caller):
    """One request, and what the sandbox knows about it."""

    __slots__ = (
        "body",
        "comes_first",
        "is_by_test",
        "line",
        "noted",
        "nothing",
        "on_thread",
        "owner",
        "real_at",
        "rehearsed",
        "rendered",
        "request",
        "routed",
        "share",
        "site",
        "stream",
        "values",
    )

    def __init__(self, site: Site, request: Request, line: Line) -> None:
        """Begin a call; where it runs is decided next."""
        super().__init__()
        self.site = site
        self.request = request
        self.line = line
        self.is_by_test = request.environ.get("HTTP_SANDBOX_CALLER") == "test"
        """Whether a test makes it, and not the shop: no journal has it, and no fault applies to it."""
        # where it runs, decided when it is placed
        self.routed: Routed | None = None  # the face, the view and the facts; None: no route matches
        self.values: Mapping[str, str] = {}  # in its path
        self.nothing: HTTPException | None = None  # why no route matches
        self.on_thread = False
        self.share = OF_NO_PROJECT  # whose share of the server it uses
        # what its middlewares and its view find out
        self.owner: Project | None = None  # of the API key or the path
        self.real_at: datetime | None = None  # when it came
        self.body: Any = None  # parsed; None: not yet
        self.noted = CallNotes()
        self.rehearsed: Fault | None = None  # what a rehearsal lets go wrong
        self.comes_first = False  # its webhooks are delivered before the response
        self.rendered: tuple[Order, str] | None = None  # what is answered: an order and the body
        self.stream: EventStream | None = None  # what it is answered with, if that never ends

    @property
    def project(self) -> Project:
        """The project that the call is about."""
        assert self.owner is not None, "the face of this route finds the project"
        return self.owner

    @property
    def masking(self) -> Masking:
        """Masks the secrets of the project: errors repeat what was sent."""
        return self.owner.masking if self.owner is not None else Masking()

    def begin_waiting(self) -> None:
        """Let other calls run while this one waits, whatever it waits for.

        Raises:
            RequestRefused: 503, too many calls wait already.
        """
        assert self.line.may_wait, "this route states in its facts that it does not wait"
        if not self.line.begin_waiting():
            raise RequestRefused(503, TOO_MANY_WAIT, {"Retry-After": "1"})

    def hold_webhooks(self) -> None:
        """Hold back this call's webhooks until its response is sent (SET-59); call it before an edit."""
        project = self.project
        if project.settings.webhook_timing == BEFORE_RESPONSE and self.line.may_wait:
            self.comes_first = True
        if self.comes_first:
            self.begin_waiting()
        self.held = Held(project.epoch.outbox)

    def release_webhooks(self, response: Response) -> Response:
        """Send the held webhooks after the response, or deliver them before it (SET-60)."""
        project, held = self.owner, self.held
        if project is None or held is None:
            return response
        if self.comes_first:
            project.deliver_held(held)
        elif not self.line.keep(project, held):
            response.call_on_close(lambda: project.release(held))
        return response
