"""The calls of the control API, one method for each.

``make docs`` writes this file from the functions in ``web/control``.
"""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import without_none
from payment_sandbox.web.answers import records as answers

__tracebackhide__ = ends_at_caller


class ControlCommands:
    """One project of a running sandbox: each method is a call of the control API.

    Every method raises ``SandboxError`` if the server refuses the call.
    """

    def call(self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None) -> Any:
        """Make any call; return the parsed body."""
        raise NotImplementedError

    def read_clock(self) -> answers.Clock:
        """Get the clock."""
        return self.call("GET", "/control/clock/")

    def change_clock(
        self,
        *,
        mode: Annotated[Literal["running", "frozen"], "Whether the clock runs by itself or is frozen."]
        | None = None,
        rate: Annotated[float, "Sandbox seconds per real second, for a running clock."] | None = None,
        now: Annotated[datetime | str, "The new time; it can only move forward."] | None = None,
    ) -> answers.MovedClock:
        """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
        return self.call("PATCH", "/control/clock/", body=without_none(mode=mode, rate=rate, now=now))

    def advance(
        self,
        *,
        by: Annotated[timedelta | str, "Advance by this duration."] | None = None,
        to: Annotated[datetime | str, "Advance to this time."] | None = None,
        until: Annotated[Literal["next", "idle"], "Advance to the next event, or until the agenda is empty."]
        | None = None,
        max_events: Annotated[int, "Stop after this many events; 10000 by default."] | None = None,
        timeout_seconds: Annotated[float, "Stop after this many real seconds; 60 by default."] | None = None,
    ) -> answers.Advance:
        """Advance the clock, event by event (CTL-13)."""
        return self.call(
            "POST",
            "/control/clock/advance/",
            body=without_none(by=by, to=to, until=until, max_events=max_events, timeout=timeout_seconds),
        )

    def agenda(self) -> list[answers.AgendaItem]:
        """List the scheduled events, including failed ones (CTL-17)."""
        return self.call("GET", "/control/agenda/")["items"]
