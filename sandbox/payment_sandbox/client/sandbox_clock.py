"""The client's access to a project's clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import to_seconds
from payment_sandbox.web.answers.records import AgendaItem, Clock

__tracebackhide__ = ends_at_caller


class CallFunction(Protocol):
    """Makes an API call and returns the parsed body."""

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """Make the call."""
        ...


def without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Advance:
    """The result of an advance: the events with their times, and the whole response as ``answer``.

    ``stopped`` is true if a limit ended the advance early; ``under_way`` lists the webhooks in flight.
    """

    answer: dict[str, Any]
    begun: datetime
    ended: datetime
    events: list[AgendaItem]
    stopped: bool
    under_way: list[dict[str, str]]

    @property
    def labels(self) -> list[str]:
        """Return the labels of the events."""
        return [event["label"] for event in self.events]


class SandboxClock:
    """The project's clock."""

    def __init__(self, call: CallFunction) -> None:
        self._call = call

    def read(self) -> Clock:
        """Return the clock's time, mode and rate."""
        clock: Clock = self._call("GET", "/control/clock/")
        return clock

    @property
    def now(self) -> datetime:
        """The current sandbox time."""
        return datetime.fromisoformat(self._call("GET", "/control/clock/")["now"])

    @property
    def mode(self) -> str:
        """The clock's mode, ``running`` or ``frozen``."""
        mode: str = self._call("GET", "/control/clock/")["mode"]
        return mode

    def advance(
        self,
        by: str | timedelta | None = None,
        *,
        to: datetime | str | None = None,
        until: str | None = None,
        max_events: int | None = None,
        timeout_seconds: float | timedelta | None = None,
    ) -> Advance:
        """Advance by a period, to a time, or until ``next`` or ``idle`` (CTL-13).

        A period is a ``timedelta``, or text such as ``PT30M``.

        All events due by then, webhooks included, run at their own times before this returns. The advance
        stops early after ``max_events`` events or ``timeout_seconds`` real seconds.
        """
        if by is not None and not isinstance(by, str | timedelta):
            raise TypeError(f"advance takes a timedelta or a period such as PT30M, not {by!r}")
        timeout = None if timeout_seconds is None else to_seconds(timeout_seconds)
        body = without_none(by=by, to=to, until=until, max_events=max_events, timeout=timeout)
        answer = self._call("POST", "/control/clock/advance/", body)
        begun, ended = (datetime.fromisoformat(answer[key]) for key in ("from", "to"))
        stopped, under_way = answer.get("stopped", False), answer.get("under_way", [])
        return Advance(answer, begun, ended, answer["events"], stopped, under_way)

    def freeze(self) -> None:
        """Freeze the clock (CTL-12)."""
        self._call("PATCH", "/control/clock/", {"mode": "frozen"})

    def run(self, rate: float = 1.0) -> None:
        """Run the clock at ``rate`` sandbox seconds per real second (CTL-12)."""
        self._call("PATCH", "/control/clock/", {"mode": "running", "rate": rate})

    def set(self, now: datetime | str) -> None:
        """Set the clock forward and run all events due by then. A time without an offset is UTC (CTL-12)."""
        self._call("PATCH", "/control/clock/", {"now": now})
