"""Calls to the sandbox without sockets, answered on the caller's thread."""

from base64 import b64encode
from collections.abc import Callable
from contextlib import nullcontext
from http.client import responses
from json import loads
from threading import current_thread
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from payment_sandbox.delivery.receivers import destination_of
from payment_sandbox.projects.caller import as_waiting_thread, caller
from payment_sandbox.projects.journal import SHOP
from payment_sandbox.projects.outbox import HeldDeliveries
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.serving.realtime import monotonic_seconds
from payment_sandbox.serving.server import Server
from payment_sandbox.testing.environments import Pairs, WsgiHead, build_environ, open_response
from payment_sandbox.testing.shops.call_origins import current_caller
from payment_sandbox.testing.shops.receiving import ShopReceiver
from payment_sandbox.testing.shops.shop_requests import DeliverHeld, ShopRequest, current_request
from payment_sandbox.web.call import CONNECTION, ClientConnection, ConnectionCut
from payment_sandbox.web.error_bodies import MERCHANT_PATHS

SETTLE_SECONDS: Final = 10.0  # how long a call waits for its direct and indirect webhooks

WAIT_PATH: Final = "/control/wait/"


class SandboxResponse(NamedTuple):
    """A response with the attributes of ``requests.Response`` that the client uses."""

    status_code: int
    reason: str
    headers: Pairs
    content: bytes

    @property
    def reason_phrase(self) -> str:
        """The standard reason phrase of the status."""
        return responses.get(self.status_code, self.reason)

    def json(self) -> Any:
        """Return the parsed body."""
        return loads(self.content)


class CutOff(Exception):
    """A fault cut the connection; ``partial`` is the part of the response received so far, or None."""

    partial: SandboxResponse | None = None


class ResponseTimeout(Exception):
    """The answer takes longer than the caller's time limit."""

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"no answer within {timeout_seconds:g} seconds")


class _InProcessConnection(ClientConnection):
    def __init__(self, caller: str, shop_request: ShopRequest | None, deliver: DeliverHeld) -> None:
        """Hold the call's webhooks until the end of the enclosing ``shop_request``, if any."""
        self.caller = caller
        self._shop_request = shop_request
        self._deliver = deliver

    def take_over(self, project: Project, held: HeldDeliveries) -> bool:
        """Hold the webhooks if the shop makes the call during a request."""
        if self._shop_request is not None:
            self._shop_request.held.append((project, held))
            self._shop_request.deliver = self._deliver
        return self._shop_request is not None


class InProcess:
    """The sandbox without sockets; a call returns once the shop has answered its webhooks.

    If the shop makes the call while it handles a request from the test, the webhooks follow the shop's
    response, as in production.
    """

    def __init__(self, server: Server, find_caller: Callable[[], str] = current_caller) -> None:
        """Answer for a server; ``find_caller`` says whether a test or its shop makes a call."""
        self._server = server
        self._find_caller = find_caller
        self._tests_thread = current_thread()

    def is_addressed(self, url: str) -> bool:
        """Return whether a URL belongs to the sandbox."""
        return url.startswith((f"{self._server.url}/", f"{secure_url(self._server.url)}/"))

    def send(
        self, method: str, url: str, headers: Pairs, body: bytes, key: str, timeout_seconds: float | None
    ) -> SandboxResponse:
        """Make one call, on this thread, as the project of ``key``.

        Raises:
            CutOff: a fault cut the connection.
            ResponseTimeout: a fault delayed the response beyond the caller's timeout.
        """
        project = self._server.registry.find(key)
        receiver, path = self._receiver_of(project), urlsplit(url).path
        shop_request = current_request() if receiver is not None and path.startswith(MERCHANT_PATHS) else None
        waits = shop_request is None and self._must_wait(project, receiver, method, path)
        started_seconds, is_settled = monotonic_seconds(), True
        delivers = waits or _may_precede_response(project, receiver)
        with as_waiting_thread() if delivers and not _is_made_by_job(project) else nullcontext():
            # the journal records the callers of these calls only
            kind = self._find_caller() if path.startswith(MERCHANT_PATHS) else SHOP
            line = _InProcessConnection(kind, shop_request, self._deliver_held)
            answer = self._answer_or_cut(build_environ(method, url, headers, body), line)
            elapsed_seconds = monotonic_seconds() - started_seconds
            if waits and project is not None:
                is_settled = _await_webhooks(project, receiver)
        response = _deliver_answer(answer, elapsed_seconds, timeout_seconds)
        return response if is_settled else _add_warning(response, project)

    def _deliver_held(self, held_by_calls: list[tuple[Project, HeldDeliveries]]) -> None:
        with as_waiting_thread():
            for project, held in held_by_calls:
                project.release(held)
            for project in dict.fromkeys(project for project, _ in held_by_calls):
                _await_webhooks(project, self._receiver_of(project))

    def _receiver_of(self, project: Project | None) -> ShopReceiver | None:
        """Return the application in this process that receives the project's webhooks."""
        if project is None:
            return None
        receiver = destination_of(project).receiver
        return receiver if isinstance(receiver, ShopReceiver) else None

    def _must_wait(
        self, project: Project | None, receiver: ShopReceiver | None, method: str, path: str
    ) -> bool:
        """Return whether a call waits for webhooks; a handler's call must not wait for its own webhook."""
        if project is None or not (
            method != "GET" or path.startswith(WAIT_PATH) or project.epoch.state.clock.running
        ):
            return False
        if receiver is not None:
            return not receiver.may_have_called()
        # with a shop behind a socket, a call on another thread may come from the webhook handler
        return current_thread() is self._tests_thread or not project.epoch.outbox.is_delivering

    def _answer_or_cut(self, environ: dict[str, Any], line: ClientConnection) -> SandboxResponse | CutOff:
        environ[CONNECTION] = line
        answers: list[bytes] = []
        heads: list[WsgiHead] = []
        try:
            with open_response(self._server.app, environ, heads.append) as pieces:
                answers.extend(pieces)
        except ConnectionCut:  # webhooks are still delivered after the cut
            cut_off = CutOff()
            cut_off.partial = _build_response(heads[-1], answers) if any(answers) else None
            return cut_off
        return _build_response(heads[-1], answers)


def _is_made_by_job(project: Project | None) -> bool:
    """Return whether a job makes the call: the advance on this thread delivers the webhooks after the job."""
    is_running = project is not None and project.epoch.jobs.running is not None
    return is_running and caller().waiting_thread() is not None


def _may_precede_response(project: Project | None, receiver: ShopReceiver | None) -> bool:
    """Return whether webhooks may precede the response to the shop's call, which then waits for them."""
    if project is None or receiver is None or receiver.may_have_called():
        return False
    return project.is_rehearsed or project.settings.webhook_timing == BEFORE_RESPONSE


def _await_webhooks(project: Project, receiver: ShopReceiver | None) -> bool:
    """Wait for a project's webhooks; reraise any test outcome from a handler; return False on timeout."""
    if project.epoch.is_advancing:  # the advance already waits for its webhooks
        return True
    is_settled = project.settle(SETTLE_SECONDS)
    if receiver is not None:
        receiver.raise_outcome()
    return is_settled


def _deliver_answer(
    answer: SandboxResponse | CutOff, elapsed_seconds: float, timeout_seconds: float | None
) -> SandboxResponse:
    if timeout_seconds is not None and elapsed_seconds > timeout_seconds:
        raise ResponseTimeout(timeout_seconds)
    if isinstance(answer, CutOff):
        raise answer
    return answer


def _build_response(head: WsgiHead, answers: list[bytes]) -> SandboxResponse:
    return SandboxResponse(head.code, head.status.partition(" ")[2], head.headers, b"".join(answers))


def _add_warning(answer: SandboxResponse, project: Project | None) -> SandboxResponse:
    pending = project.epoch.outbox.pending() if project is not None else []
    warning = f"webhooks are still unanswered after {SETTLE_SECONDS:g} seconds: {', '.join(pending[:10])}"
    return answer._replace(headers=[*answer.headers, ("Sandbox-Warnings", warning)])


def basic_authorization(key: str, password: str = "") -> str:
    """Return the ``Authorization`` header with an API key."""
    return f"Basic {b64encode(f'{key}:{password}'.encode()).decode()}"


def secure_url(url: str) -> str:
    """Return a server's address with https; socket-free clients accept it, too."""
    return f"https://{url.partition('://')[2]}"
