"""What each effect of a fault or a rehearsal does to a request: one class for each effect.

An effect without a class, or a class without its two methods, is refused when this module is imported: no
fault can do nothing by accident.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any, ClassVar, Final, Generic, TypeVar

from flask import Response, request

from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.effects import (
    RATE_LIMITED,
    ErrorStatus,
    Fault,
    Hang,
    RateLimit,
    RequestEffect,
    Reset,
    Silence,
    Stale,
    Truncate,
    WebhooksFirst,
)
from payment_sandbox.web.carried import CUT_OFF, SILENCE, exchange
from payment_sandbox.web.errors import RequestRefused, refused_answer
from payment_sandbox.web.placing import begin_waiting, may_wait

SILENCE_SECONDS: Final = 3.0

AnyEffect = TypeVar("AnyEffect", bound=RequestEffect)


class Behaviour(ABC, Generic[AnyEffect]):
    """Does what one kind of effect means for a request."""

    of: ClassVar[dict[type[RequestEffect], "type[Behaviour[Any]]"]] = {}

    def __init_subclass__(cls, *, effect: type[RequestEffect] | None = None, **options: Any) -> None:
        """Register the behaviour of an effect; None: a common base of several."""
        super().__init_subclass__(**options)
        if effect is not None:
            cls.of[effect] = cls

    def __init__(self, effect: AnyEffect) -> None:
        self.effect = effect

    @abstractmethod
    def before(self) -> Response | None:
        """Answer instead of the request; None to process it."""

    @abstractmethod
    def after(self, response: Response, fault: Fault) -> Response:
        """What the client gets instead of the response to the processed request, or the response itself."""


class InsteadOfResponse(Behaviour[AnyEffect]):
    """Replaces the response, before or after the request is processed, as the fault's phase says."""

    @abstractmethod
    def instead(self, lost_status: int | None) -> Response:
        """What comes instead; ``lost_status`` is that of the lost response, if there was one."""

    def before(self) -> Response:
        """What comes instead of processing the request."""
        return self.instead(None)

    def after(self, response: Response, fault: Fault) -> Response:
        """What comes instead of the response, if the fault comes after processing."""
        return self.instead(response.status_code) if fault.is_after else response


class AnswerWithError(InsteadOfResponse[ErrorStatus], effect=ErrorStatus):
    """Refuses the request, or only says so."""

    def instead(self, lost_status: int | None) -> Response:
        """The error."""
        return refused_answer(RequestRefused(self.effect.status, "a configured fault"))


class RefuseOverRate(InsteadOfResponse[RateLimit], effect=RateLimit):
    """Refuses a request over the rate."""

    def instead(self, lost_status: int | None) -> Response:
        """Nothing is processed.

        Raises:
            RequestRefused: 429.
        """
        over = f"over the rate limit of {self.effect.value}"
        raise RequestRefused(RATE_LIMITED, over, {"Retry-After": "1"})


class CutAfterAWhile(InsteadOfResponse[Hang], effect=Hang):
    """Sends nothing for a while, then cuts the connection."""

    def instead(self, lost_status: int | None) -> Response:
        """No response."""
        _pass_real_time(self.effect.seconds)
        return _no_response(request.environ[CUT_OFF], lost_status)


class Cut(InsteadOfResponse[Reset], effect=Reset):
    """Cuts the connection."""

    def instead(self, lost_status: int | None) -> Response:
        """No response."""
        return _no_response(request.environ[CUT_OFF], lost_status)


class NeverAnswer(InsteadOfResponse[Silence], effect=Silence):
    """Sends nothing for as long as a client waits."""

    def instead(self, lost_status: int | None) -> Response:
        """No response."""
        silence = request.environ.get(SILENCE)
        if silence is None:
            _pass_real_time(SILENCE_SECONDS)
        return _no_response(silence or request.environ[CUT_OFF], lost_status)


class SendHalf(Behaviour[Truncate], effect=Truncate):
    """Announces the full length, but sends only half of the body."""

    def before(self) -> None:
        """Process the request."""

    def after(self, response: Response, fault: Fault) -> Response:
        """The first half."""
        body = response.get_data()
        cut_off = request.environ[CUT_OFF]

        def half() -> Iterator[bytes]:
            yield body[: len(body) // 2]
            cut_off()

        short = Response(half(), status=response.status_code, headers=response.headers)
        short.headers["Content-Length"] = str(len(body))
        return short


class ByAnotherStep(Behaviour[AnyEffect]):
    """Leaves request and response alone: another step asks for the effect, which its class names."""

    def before(self) -> None:
        """Process the request."""

    def after(self, response: Response, fault: Fault) -> Response:
        """The response."""
        return response


class ShowEarlierOrder(ByAnotherStep[Stale], effect=Stale):
    """``exchange.finish`` shows an order as the rehearsal has it."""


class SendWebhooksFirst(ByAnotherStep[WebhooksFirst], effect=WebhooksFirst):
    """``after.release_webhooks`` delivers the webhooks before the response."""


def require_behaviours(kind: type[RequestEffect] = RequestEffect) -> None:
    """Refuse an effect without a complete behaviour.

    Raises:
        TypeError: names it.
    """
    for effect in kind.__subclasses__():
        behaviour = Behaviour.of.get(effect)
        if behaviour is None:
            raise TypeError(f"nothing says what {effect.__name__} does to a request")
        missing = ", ".join(sorted(behaviour.__abstractmethods__))
        if missing:
            raise TypeError(f"{behaviour.__name__} does not say what {effect.__name__} does: {missing}")
        require_behaviours(effect)


require_behaviours()


def behaviour_of(fault: Fault) -> Behaviour[Any] | None:
    """What a fault does besides its delay; None: nothing."""
    return None if fault.effect is None else Behaviour.of[type(fault.effect)](fault.effect)


def apply_before(project: Project) -> Response | None:
    """Find this request's fault, and apply it if it comes before processing."""
    fault = _matching(project) or exchange().rehearsed
    if fault is None or isinstance(fault.effect, WebhooksFirst):
        return None
    begin_waiting()
    exchange().fault = fault
    if fault.latency is not None:
        _pass_real_time(fault.latency)
    behaviour = behaviour_of(fault)
    return None if fault.is_after or behaviour is None else behaviour.before()


def _matching(project: Project) -> Fault | None:
    """The fault that is configured for this request, which is counted."""
    state = project.epoch.state
    if not may_wait() or (not state.faults.faults and not state.scenario_faults.faults):
        return None
    with project.edit() as edit:
        own, faults = edit.state.faults.match(request.method, request.path, edit.now)
        scenario, scenario_faults = edit.state.scenario_faults.match(request.method, request.path, edit.now)
        edit.state = edit.state._replace(faults=faults, scenario_faults=scenario_faults)
    return own or scenario


def apply_after(fault: Fault, response: Response) -> Response:
    """Apply a fault that comes after processing: the response is lost or cut short."""
    behaviour = behaviour_of(fault)
    return response if behaviour is None else behaviour.after(response, fault)


def _no_response(cut_off: Callable[[], None], status: int | None) -> Response:
    exchange().is_cut, exchange().cut_status = True, status
    return Response(_cut_off(cut_off))


def _pass_real_time(seconds: float) -> None:
    Event().wait(seconds)  # the only real-time wait; the fault requires it


def _cut_off(cut_off: Callable[[], None]) -> Iterator[bytes]:
    cut_off()
    yield b""
