"""Effects of faults and rehearsals on requests and on webhook delivery attempts.

Each effect is a class. The tables at the end list the effects of scenarios and faults, by ``key``; forms,
schema, documentation and review are generated from them. ``WebhooksFirst`` is for rehearsals only.
``web/merchant/fault_effects.py`` applies the effects on requests. Tests may pass effects as objects:
``{"then": Duplicate(2)}`` is ``{"then": {"duplicate": 2}}``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, ClassVar, Final, Self, cast

from marshmallow import ValidationError
from marshmallow.fields import Field

from payment_sandbox.forms import PeriodText, Text, Whole
from payment_sandbox.forms.fields import Seconds, Yes
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.orders.webhooks import (
    ANSWERED_BY_SCENARIO,
    DROPPED_BY_SCENARIO,
    TIMED_OUT_BY_SCENARIO,
    Reply,
)

PHASE_AFTER: Final = "after"
PHASE_BEFORE: Final = "before"
RATE_LIMITED: Final = 429


@dataclass(frozen=True)
class Effect:
    """An effect on one step; its first field, if any, is the value in documents."""

    key: ClassVar[str]
    field: ClassVar["Field[Any]"]  # parses the value

    @property
    def value(self) -> Any:
        """The value under the key in a document."""
        return next((getattr(self, each.name) for each in fields(self)), True)

    @property
    def document(self) -> dict[str, Any]:
        """The effect as data, as under ``then`` in a scenario."""
        return {self.key: self.value}

    @classmethod
    def of(cls, value: Any) -> Self:
        """Create the effect from validated data."""
        return cast(Any, cls)(value) if fields(cls) else cls()


class RequestEffect(Effect):
    """An effect on a request."""

    example: ClassVar[str] = ""
    client_sees: ClassVar[str] = ""
    has_phase: ClassVar[bool] = False  # whether the effect can apply before or after processing
    loses_response: ClassVar[bool] = False
    sends_nothing: ClassVar[bool] = False  # not even a part of a response

    @property
    def refusal_status(self) -> int | None:
        """The status of the response if the effect refuses the request."""
        return None


@dataclass(frozen=True)
class ErrorStatus(RequestEffect):
    """The response has an error status."""

    status: int
    key = "status"
    field = Whole(low=400, high=599, about="The response has this error status.")
    example = "503"
    client_sees = "an error with this status, from 400 to 599"
    has_phase = True
    loses_response = True

    @property
    def refusal_status(self) -> int:
        """The error status."""
        return self.status


@dataclass(frozen=True)
class Hang(RequestEffect):
    """The server sends nothing for some real seconds, then closes the connection."""

    seconds: float
    key = "hang"
    field = Seconds(about="Sends nothing for this many real seconds, then closes the connection.")
    example = "5"
    client_sees = "no response for five real seconds, then a closed connection"
    has_phase = True
    loses_response = True
    sends_nothing = True


class Reset(RequestEffect):
    """The connection is reset without a response."""

    key = "reset"
    field = Yes(about="Cuts the connection without a response.")
    example = "true"
    client_sees = "a connection reset"
    has_phase = True
    loses_response = True
    sends_nothing = True


class Truncate(RequestEffect):
    """The response is cut off in the middle."""

    key = "truncate"
    field = Yes(about="Cuts the response off in the middle.")
    example = "true"
    client_sees = "a response that is cut off in the middle"
    loses_response = True


class RateLimitText(Text):
    """A rate: requests per period."""

    expected = "requests per period, such as 10/PT1S"

    def __init__(self, **options: Any) -> None:
        super().__init__(pattern=r"[1-9]\d{0,5}/P.+", expected=self.expected, **options)

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        text = super()._deserialize(value, *context, **options)
        if "/P" not in text:
            return text  # the pattern then refuses the text
        try:
            period = Period.parse(text.partition("/")[2])
        except PeriodError as error:
            raise ValidationError(f"must be {self.expected}: {error}") from None
        if period.is_zero:
            raise ValidationError(f"must be {self.expected}: the period is zero")
        return text


@dataclass(frozen=True, init=False)
class RateLimit(RequestEffect):
    """Requests above a rate, in sandbox time, are refused; refused requests do not count."""

    requests: int
    period: Period
    key = "rate_limit"
    field = RateLimitText(about="Requests above this rate, in sandbox time, get 429 RateLimited.")
    example = "10/PT1S"
    client_sees = (
        "429 `RateLimited` after more than ten requests per second of sandbox time; on a frozen clock, until "
        "you advance it"
    )

    def __init__(self, requests: int, period: Period | str | timedelta) -> None:
        object.__setattr__(self, "requests", requests)
        object.__setattr__(self, "period", Period.of(period))

    @property
    def value(self) -> str:
        """The rate as text, such as ``10/PT1S``."""
        return f"{self.requests}/{self.period.spelling}"

    @property
    def refusal_status(self) -> int:
        """429 Too Many Requests."""
        return RATE_LIMITED

    @classmethod
    def of(cls, value: str) -> Self:
        """Parse a rate such as ``10/PT1S``."""
        requests, _, period = value.partition("/")
        return cls(int(requests), period)


class WebhooksFirst(RequestEffect):
    """The webhooks of the request arrive before its response."""

    key = "early"


@dataclass(frozen=True)
class Fault:
    """A fault of one request: an effect, a delay of ``latency`` real seconds, or both.

    With ``is_after``, the request is processed, and only its response is affected.
    """

    effect: RequestEffect | None = None
    latency: float | None = None
    is_after: bool = False

    @classmethod
    def from_data(cls, then: Mapping[str, Any]) -> "Fault":
        """Create the fault from validated data."""
        effect = next((kind.of(then[kind.key]) for kind in REQUEST_EFFECTS if kind.key in then), None)
        return cls(effect, then.get("latency"), then.get("phase") == PHASE_AFTER)

    @property
    def document(self) -> dict[str, Any]:
        """The fault as data, as in a scenario."""
        document: dict[str, Any] = {}
        if self.effect is not None:
            document |= self.effect.document
        if self.latency is not None:
            document["latency"] = self.latency
        if self.is_after:
            document["phase"] = PHASE_AFTER
        return document

    @property
    def loses_response(self) -> bool:
        """Whether the client gets no response, or an inconclusive one."""
        return self.effect is not None and self.effect.loses_response

    @property
    def changes_response(self) -> bool:
        """Whether the client gets a different response or none; a delay alone does not count."""
        return self.effect is not None and not isinstance(self.effect, WebhooksFirst)

    @property
    def sends_nothing(self) -> bool:
        """Whether the client receives nothing at all."""
        return self.effect is not None and self.effect.sends_nothing


class WebhookEffect(Effect):
    """An effect on a webhook delivery attempt."""

    reply: Reply | None = None
    """The simulated reply to a webhook that is not sent; None if the webhook is sent."""
    copies: int = 1
    """The number of copies to send."""


@dataclass(frozen=True)
class Answer(WebhookEffect):
    """The attempt counts as answered, without a request to the merchant."""

    status: int
    key = "answer"
    field = Whole(
        low=100, high=599, about="Counts as answered with this status; no request is sent to the merchant."
    )

    @property
    def reply(self) -> Reply:  # type: ignore[override]
        """A reply with the status."""
        return Reply(0.0, status=self.status, warning=ANSWERED_BY_SCENARIO)


class Timeout(WebhookEffect):
    """The attempt counts as timed out, without a request to the merchant."""

    key = "timeout"
    field = Yes(about="Fails at once, as if the merchant had timed out; no request is sent to the merchant.")
    reply = Reply(0.0, error=TIMED_OUT_BY_SCENARIO)


class Drop(WebhookEffect):
    """The webhook is lost: it counts as delivered, without a request to the merchant."""

    key = "drop"
    field = Yes(about="Is lost: counts as delivered, but no request is sent to the merchant.")
    reply = Reply(0.0, warning=DROPPED_BY_SCENARIO)


@dataclass(frozen=True)
class RepeatedDelivery(WebhookEffect):
    """The webhook arrives several times."""

    times: int

    @property
    def copies(self) -> int:  # type: ignore[override]
        """The number of copies to send."""
        return self.times


class Duplicate(RepeatedDelivery):
    """The webhook arrives several times: concurrently over the network, in sequence inside a test."""

    key = "duplicate"
    field = Whole(low=2, high=10, about="Arrives this many times.")


class Together(RepeatedDelivery):
    """All copies of the webhook arrive at the same time."""

    key = "together"
    field = Whole(low=2, high=10, about="Arrives this many times, at the same time.")


@dataclass(frozen=True, init=False)
class Delay(WebhookEffect):
    """The webhook arrives later."""

    period: Period
    key = "delay"
    field = PeriodText(about="Arrives later, by this ISO 8601 period.")

    def __init__(self, period: Period | str | timedelta) -> None:
        object.__setattr__(self, "period", Period.of(period))

    @property
    def value(self) -> str:
        """The period as text, such as ``PT1H``."""
        return self.period.spelling


class Swap(WebhookEffect):
    """The webhook arrives after the next one."""

    key = "swap"
    field = Yes(about="Arrives after the next webhook of the project, or after two minutes.")


REQUEST_EFFECTS: Final[Sequence[type[RequestEffect]]] = (ErrorStatus, Hang, Reset, Truncate, RateLimit)
"""The effects of faults; a fault has one of them, a latency, or both."""

WEBHOOK_EFFECTS: Final[Sequence[type[WebhookEffect]]] = (
    Answer,
    Timeout,
    Drop,
    Duplicate,
    Together,
    Delay,
    Swap,
)
"""The effects of webhook rules on a delivery attempt."""

NO_EFFECT: Final = WebhookEffect()
"""The absence of an effect: the merchant receives the attempt."""


def read_webhook_effect(then: Mapping[str, Any]) -> WebhookEffect:
    """Create the webhook effect from validated data."""
    return next(kind.of(then[kind.key]) for kind in WEBHOOK_EFFECTS if kind.key in then)
