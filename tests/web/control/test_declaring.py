"""A function becomes a call of the control API: its signature is the form, its docstring the description."""

from typing import Annotated, Literal

import pytest

from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import clock_record
from payment_sandbox.web.control.declaring import COMMANDS, command
from payment_sandbox.web.routes import RouteGroup


def test_a_function_becomes_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The declared command has the form, the description and the path of its function."""
    monkeypatch.setattr("payment_sandbox.web.control.declaring.COMMANDS", dict(COMMANDS))
    group = RouteGroup("extra", "/control")

    @command(group, "POST", "/mood/")
    def set_mood(
        project: Project, *, mood: Annotated[Literal["calm", "busy"], "The mood."] | None = None
    ) -> records.Clock:
        """Set the mood."""
        return clock_record(project)

    from payment_sandbox.web.control import declaring

    made = declaring.COMMANDS["set_mood"]
    assert (made.method, made.path, made.about) == ("POST", "/control/mood/", "Set the mood.")
    assert made.read({"mood": "calm"}) == {"mood": "calm"}
    with pytest.raises(Invalid, match="did you mean 'mood'"):
        made.read({"mod": "calm"})
