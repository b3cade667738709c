"""The client's access to a project's clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from payment_sandbox.client.control_commands import ControlCommands
from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.web.answers import records as answers
from payment_sandbox.web.answers.records import Clock, ProcessedEvent, WebhookInFlight

__tracebackhide__ = ends_at_caller


@dataclass(frozen=True)
class Advance:
    """The result of an advance: the events with their times, and the whole response as ``answer``.

    ``stopped`` is true if a limit ended the advance early; ``under_way`` lists the webhooks in flight.
    """

    answer: answers.Advance
    begun: datetime
    ended: datetime
    events: list[ProcessedEvent]
    stopped: bool
    under_way: list[WebhookInFlight]

    @property
    def labels(self) -> list[str]:
        """Return the labels of the events."""
        return [event["label"] for event in self.events]


class SandboxClock:
    """The project's clock."""

    def __init__(self, commands: ControlCommands) -> None:
        self._commands = commands

    def read(self) -> Clock:
        """Return the clock's time, mode and rate."""
        return self._commands.read_clock()

    @property
    def now(self) -> datetime:
        """The current sandbox time."""
        return datetime.fromisoformat(self.read()["now"])

    @property
    def mode(self) -> str:
        """The clock's mode, ``running`` or ``frozen``."""
        return self.read()["mode"]

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
        answer = self._commands.advance(
            by=by,
            to=to,
            until=until,  # type: ignore[arg-type] # the server refuses any other word, with a suggestion
            max_events=max_events,
            timeout_seconds=timeout_seconds,
        )
        begun, ended = (datetime.fromisoformat(moment) for moment in (answer["from"], answer["to"]))
        stopped, under_way = answer.get("stopped", False), answer.get("under_way", [])
        return Advance(answer, begun, ended, answer["events"], stopped, under_way)

    def freeze(self) -> None:
        """Freeze the clock (CTL-12)."""
        self._commands.change_clock(mode="frozen")

    def run(self, rate: float = 1.0) -> None:
        """Run the clock at ``rate`` sandbox seconds per real second (CTL-12)."""
        self._commands.change_clock(mode="running", rate=rate)

    def set(self, now: datetime | str) -> None:
        """Set the clock forward and run all events due by then. A time without an offset is UTC (CTL-12)."""
        self._commands.change_clock(now=now)
