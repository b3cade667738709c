"""Effects: what a fault or a rehearsal does to a request, or to an attempt to deliver a webhook.

An effect is one class. The tables at the end list those that scenarios and faults may contain, under their
``key``: form, schema, documentation and review go by them; the others are for rehearsals only. Those of
requests are applied in ``web/merchant/faults.py``. Tests may use the objects where a document has their data:
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

AFTER: Final = "after"
BEFORE: Final = "before"
RATE_LIMITED: Final = 429


@dataclass(frozen=True)
class Effect:
    """What happens to one step. A subclass has at most one value that users write, its first field."""

    key: ClassVar[str]
    field: ClassVar["Field[Any]"]  # reads the value

    @property
    def value(self) -> Any:
        """The value that a document has under the key."""
        return next((getattr(self, each.name) for each in fields(self)), True)

    @property
    def document(self) -> dict[str, Any]:
        """The effect as data, as after ``then`` in a scenario."""
        return {self.key: self.value}

    @classmethod
    def of(cls, value: Any) -> Self:
        """The effect with a value from checked data."""
        return cast(Any, cls)(value) if fields(cls) else cls()


class RequestEffect(Effect):
    """What goes wrong with a request."""

    example: ClassVar[str] = ""
    client_sees: ClassVar[str] = ""
    has_phase: ClassVar[bool] = False  # it comes before the request is processed, or after
    loses_response: ClassVar[bool] = False

    @property
    def refusal_status(self) -> int | None:
        """The status of the response, if it is a refusal."""
        return None


@dataclass(frozen=True)
class ErrorStatus(RequestEffect):
    """The response is an error."""

    status: int
    key = "status"
    field = Whole(low=400, high=599, about="The response has this error status.")
    example = "503"
    client_sees = "an error with this status, from 400 to 599"
    has_phase = True
    loses_response = True

    @property
    def refusal_status(self) -> int:
        """This status."""
        return self.status


@dataclass(frozen=True)
class Hang(RequestEffect):
    """Nothing comes for some real seconds; then the connection is closed."""

    seconds: float
    key = "hang"
    field = Seconds(about="Sends nothing for this many real seconds, then closes the connection.")
    example = "5"
    client_sees = "no response for five real seconds, then a closed connection"
    has_phase = True
    loses_response = True


class Reset(RequestEffect):
    """The connection is cut."""

    key = "reset"
    field = Yes(about="Cuts the connection without a response.")
    example = "true"
    client_sees = "the connection is cut off"
    has_phase = True
    loses_response = True


class Truncate(RequestEffect):
    """The response ends in its middle."""

    key = "truncate"
    field = Yes(about="Cuts the response off in the middle.")
    example = "true"
    client_sees = "a response that is cut off in the middle"
    loses_response = True


class RateLimitText(Text):
    """Requests per period."""

    expected = "requests per period, such as 10/PT1S"

    def __init__(self, **options: Any) -> None:
        super().__init__(pattern=r"[1-9]\d{0,5}/P.+", expected=self.expected, **options)

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        text = super()._deserialize(value, *context, **options)
        if "/P" not in text:
            return text  # which the pattern refuses
        try:
            period = Period.parse(text.partition("/")[2])
        except PeriodError as error:
            raise ValidationError(f"must be {self.expected}: {error}") from None
        if period.is_zero:
            raise ValidationError(f"must be {self.expected}: the period is zero")
        return text


@dataclass(frozen=True, init=False)
class RateLimit(RequestEffect):
    """Requests over a rate, in sandbox time, are refused; they do not count."""

    requests: int
    period: Period
    key = "rate_limit"
    field = RateLimitText(about="Requests over this rate, in sandbox time, get 429 RateLimited.")
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
        """Such as ``10/PT1S``."""
        return f"{self.requests}/{self.period.spelling}"

    @property
    def refusal_status(self) -> int:
        """Too many requests."""
        return RATE_LIMITED

    @classmethod
    def of(cls, value: str) -> Self:
        """The limit in a text such as ``10/PT1S``."""
        requests, _, period = value.partition("/")
        return cls(int(requests), period)


class Silence(RequestEffect):
    """No response ever comes, however long the client waits."""

    key = "silence"
    loses_response = True


class Stale(RequestEffect):
    """An order is answered as the client has seen it before."""

    key = "stale"


class WebhooksFirst(RequestEffect):
    """The webhooks of the request come before its response."""

    key = "early"


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request: an effect, a delay of ``latency`` real seconds, or both.

    With ``is_after``, the request is processed, and only its response is lost.
    """

    effect: RequestEffect | None = None
    latency: float | None = None
    is_after: bool = False

    @classmethod
    def read(cls, then: Mapping[str, Any]) -> "Fault":
        """The fault in checked data."""
        effect = next((kind.of(then[kind.key]) for kind in REQUEST_EFFECTS if kind.key in then), None)
        return cls(effect, then.get("latency"), then.get("phase") == AFTER)

    @property
    def document(self) -> dict[str, Any]:
        """The fault as data, as in a scenario."""
        document: dict[str, Any] = {}
        if self.effect is not None:
            document |= self.effect.document
        if self.latency is not None:
            document["latency"] = self.latency
        if self.is_after:
            document["phase"] = AFTER
        return document

    @property
    def loses_response(self) -> bool:
        """Whether the client gets no response, or none that says what happened."""
        return self.effect is not None and self.effect.loses_response


class WebhookEffect(Effect):
    """What happens to an attempt to deliver a webhook."""

    @property
    def reply(self) -> Reply | None:
        """Decides the attempt, so that nothing is sent."""
        return None

    @property
    def copies(self) -> int:
        """How many times it comes."""
        return 1


@dataclass(frozen=True)
class Answer(WebhookEffect):
    """It counts as answered."""

    status: int
    key = "answer"
    field = Whole(low=100, high=599, about="Counts as answered with this status; the merchant is not called.")

    @property
    def reply(self) -> Reply:
        """The answer."""
        return Reply(0.0, status=self.status, warning=ANSWERED_BY_SCENARIO)


class Timeout(WebhookEffect):
    """It counts as timed out."""

    key = "timeout"
    field = Yes(about="Fails at once, as if the merchant had timed out; the merchant is not called.")

    @property
    def reply(self) -> Reply:
        """No answer."""
        return Reply(0.0, error=TIMED_OUT_BY_SCENARIO)


class Drop(WebhookEffect):
    """It is lost."""

    key = "drop"
    field = Yes(about="Is lost: counts as delivered, but the merchant is not called.")

    @property
    def reply(self) -> Reply:
        """Counts as delivered."""
        return Reply(0.0, warning=DROPPED_BY_SCENARIO)


@dataclass(frozen=True)
class Repeated(WebhookEffect):
    """It comes several times."""

    times: int

    @property
    def copies(self) -> int:
        """So many."""
        return self.times


class Duplicate(Repeated):
    """It comes several times: over the network at the same time, in a test's process one after the other."""

    key = "duplicate"
    field = Whole(low=2, high=10, about="Arrives this many times.")


class OneByOne(Duplicate):
    """It comes several times, one after the other also over the network; for rehearsals only."""


class Together(Repeated):
    """All come at the same moment."""

    key = "together"
    field = Whole(low=2, high=10, about="Arrives this many times, at the same moment.")


@dataclass(frozen=True, init=False)
class Delay(WebhookEffect):
    """It comes later."""

    period: Period
    key = "delay"
    field = PeriodText(about="Arrives this much later.")

    def __init__(self, period: Period | str | timedelta) -> None:
        object.__setattr__(self, "period", Period.of(period))

    @property
    def value(self) -> str:
        """Such as ``PT1H``."""
        return self.period.spelling


class Swap(WebhookEffect):
    """It comes after the next one."""

    key = "swap"
    field = Yes(about="Arrives after the next webhook of the project.")


REQUEST_EFFECTS: Final[Sequence[type[RequestEffect]]] = (ErrorStatus, Hang, Reset, Truncate, RateLimit)
"""What a fault can do; a fault has one of them, a latency, or both."""

WEBHOOK_EFFECTS: Final[Sequence[type[WebhookEffect]]] = (
    Answer,
    Timeout,
    Drop,
    Duplicate,
    Together,
    Delay,
    Swap,
)
"""What can happen to an attempt to deliver a webhook."""

UNTOUCHED: Final = WebhookEffect()
"""The attempt goes to the merchant."""


def read_webhook_effect(then: Mapping[str, Any]) -> WebhookEffect:
    """The effect in checked data."""
    return next(kind.of(then[kind.key]) for kind in WEBHOOK_EFFECTS if kind.key in then)
