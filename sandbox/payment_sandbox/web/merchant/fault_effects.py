"""The behaviour of each effect of a fault or a rehearsal on a request: one class per effect.

Importing this module fails if an effect has no class, or if a class lacks one of its two methods, so that no
fault is a no-op by accident.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import ceil
from socket import SHUT_RDWR
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from flask import Response

from payment_sandbox.projects.rehearsal import ShopCall
from payment_sandbox.scenarios.effects import (
    RATE_LIMITED,
    ErrorStatus,
    Fault,
    Hang,
    RateLimit,
    RequestEffect,
    Reset,
    Truncate,
    WebhooksFirst,
)
from payment_sandbox.web.call import Call, ConnectionCut
from payment_sandbox.web.error_answers import refusal_answer
from payment_sandbox.web.error_bodies import RequestRefused

AnyEffect = TypeVar("AnyEffect", bound=RequestEffect)


class Behaviour(ABC, Generic[AnyEffect]):
    """The behaviour of one kind of effect on a request."""

    by_effect: ClassVar[dict[type[RequestEffect], "type[Behaviour[Any]]"]] = {}

    def __init_subclass__(cls, *, effect: type[RequestEffect] | None = None, **options: Any) -> None:
        """Register the behaviour of an effect; ``effect`` is None for a common base class."""
        super().__init_subclass__(**options)
        if effect is not None:
            cls.by_effect[effect] = cls

    def __init__(self, effect: AnyEffect) -> None:
        self.effect = effect

    @abstractmethod
    def before(self, call: Call) -> Response | None:
        """Return a response without processing the request; None to process it."""

    @abstractmethod
    def after(self, call: Call, response: Response) -> Response:
        """Return the response of the processed request, or a replacement."""


class ReplaceResponse(Behaviour[AnyEffect]):
    """Replaces the response before or after the request is processed, depending on the fault's phase."""

    @abstractmethod
    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Return the replacement; ``lost_status`` is the status of the lost response, if any."""

    def before(self, call: Call) -> Response:
        """Return the replacement without processing the request."""
        return self.replacement(call, None)

    def after(self, call: Call, response: Response) -> Response:
        """Return the replacement after processing, if the phase is after."""
        fault = call.notes.fault
        is_after = fault is not None and fault.is_after
        return self.replacement(call, response.status_code) if is_after else response


class AnswerWithError(ReplaceResponse[ErrorStatus], effect=ErrorStatus):
    """Refuses the request, or processes it and answers with a refusal."""

    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Return the error."""
        return refusal_answer(call, RequestRefused(self.effect.status, "a configured fault"))


class RefuseOverRate(ReplaceResponse[RateLimit], effect=RateLimit):
    """Refuses a request that exceeds the rate limit."""

    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Refuse with 429; ``Retry-After`` is the length of the window."""
        over, now = f"over the rate limit of {self.effect.value}", call.project.now()
        seconds = ceil((self.effect.period.after(now) - now).total_seconds())
        return refusal_answer(call, RequestRefused(RATE_LIMITED, over, {"Retry-After": str(seconds)}))


class CutAfterDelay(ReplaceResponse[Hang], effect=Hang):
    """Sends nothing for a while, then cuts the connection."""

    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Send no response."""
        call.connection.pause(self.effect.seconds)
        return _no_response(call, lost_status)


class CutConnection(ReplaceResponse[Reset], effect=Reset):
    """Cuts the connection."""

    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Send no response."""
        return _no_response(call, lost_status)


class SendHalfBody(Behaviour[Truncate], effect=Truncate):
    """Declares the full length, but sends only half of the body."""

    def before(self, call: Call) -> None:
        """Process the request."""

    def after(self, call: Call, response: Response) -> Response:
        """Return the first half."""
        body = response.get_data()

        def send_half() -> Iterator[bytes]:
            yield body[: len(body) // 2]
            _cut(call)

        short = Response(send_half(), status=response.status_code, headers=response.headers)
        short.headers["Content-Length"] = str(len(body))
        return short


class SendWebhooksFirst(Behaviour[WebhooksFirst], effect=WebhooksFirst):
    """A no-op: ``release_webhooks`` in ``web.releasing`` delivers the webhooks before the response."""

    def before(self, call: Call) -> None:
        """Process the request."""

    def after(self, call: Call, response: Response) -> Response:
        """Return the response unchanged."""
        return response


def require_behaviours(kind: type[RequestEffect] = RequestEffect) -> None:
    """Refuse an effect that has no complete behaviour.

    Raises:
        TypeError: the message names the effect.
    """
    for effect in kind.__subclasses__():
        behaviour = Behaviour.by_effect.get(effect)
        if behaviour is None:
            raise TypeError(f"no behaviour is defined for {effect.__name__}")
        missing = ", ".join(sorted(behaviour.__abstractmethods__))
        if missing:
            raise TypeError(f"{behaviour.__name__} must define for {effect.__name__}: {missing}")
        require_behaviours(effect)


require_behaviours()


def behaviour_of(fault: Fault) -> Behaviour[Any] | None:
    """Return the behaviour of a fault; None if the fault only delays the call."""
    return None if fault.effect is None else Behaviour.by_effect[type(fault.effect)](fault.effect)


def begin_fault(call: Call) -> Response | None:
    """Begin the configured fault of a call, or the fault chosen by a rehearsal."""
    rehearsed = _rehearsed_fault(call)
    fault = _configured_fault(call) or rehearsed
    if fault is None or isinstance(fault.effect, WebhooksFirst):
        return None
    call.notes.fault = fault
    if fault.latency is not None:
        call.connection.pause(fault.latency)
    behaviour = behaviour_of(fault)
    early = behaviour.before(call) if behaviour is not None and not fault.is_after else None
    call.notes.is_lost = early is not None
    return early


def end_fault(call: Call, fault: Fault, response: Response) -> Response:
    """Let the fault of a call lose or replace the response."""
    behaviour = behaviour_of(fault)
    if behaviour is not None:
        sent = behaviour.after(call, response)
        call.notes.is_lost = sent is not response
        return sent
    return response


def _rehearsed_fault(call: Call) -> Fault | None:
    """Ask the rehearsal, which may choose a fault, or webhooks before the response."""
    step = ShopCall(call.request.method, call.request.path)
    fault: Fault | None = call.project.epoch.rehearsal.choose(step)
    if fault is not None and call.held is not None and isinstance(fault.effect, WebhooksFirst):
        call.held.precede_response = True
    return fault


def _configured_fault(call: Call) -> Fault | None:
    """Find the configured fault of this call, and count the call."""
    project, request = call.project, call.request
    state = project.epoch.state
    if not state.faults.faults and not state.scenario_faults.faults:
        return None
    with project.edit() as edit:
        own, changed = edit.state.faults.match(request.method, request.path, edit.now)
        scenario, scenario_faults = edit.state.scenario_faults.match(request.method, request.path, edit.now)
        edit.state = edit.state._replace(faults=changed, scenario_faults=scenario_faults)
    return own or scenario


def _no_response(call: Call, lost_status: int | None) -> Response:
    call.notes.is_cut, call.notes.lost_status = True, lost_status
    return Response(_CutBeforeTheFirstByte(call))


class _CutBeforeTheFirstByte(Iterator[bytes]):
    def __init__(self, call: Call) -> None:
        self._call = call

    def __next__(self) -> bytes:
        _cut(self._call)


def _cut(call: Call) -> NoReturn:
    """Cut the connection: WSGI servers do so after an error, except for werkzeug's."""
    connection = call.request.environ.get("werkzeug.socket")
    if connection is not None:
        connection.shutdown(SHUT_RDWR)
    raise ConnectionCut
