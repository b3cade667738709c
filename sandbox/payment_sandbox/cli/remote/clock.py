"""The commands that show and move the clock."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from payment_sandbox.cli.remote.calling import Call, group, remote

if TYPE_CHECKING:
    from payment_sandbox.client.answers import Clock


@group("clock", example="clock --by PT30M")
@click.option("--by", help="Advance by a period, such as PT30M.")
@click.option("--to", help="Advance to a time.")
@click.option("--until", type=click.Choice(["next", "idle"]), help="Advance to the next event or until idle.")
@click.option("--freeze", is_flag=True, help="Freeze the clock.")
@click.option("--rate", type=float, help="Run the clock at this many seconds per second.")
def clock(call: Call, freeze: bool, rate: float | None, **aim: str | None) -> None:
    """Show the clock, or move it."""
    given = [name for name, value in aim.items() if value is not None]
    if len(given) + freeze + (rate is not None) > 1:
        raise click.UsageError("give one of: --by, --to, --until, --freeze, --rate")
    if given:
        call.show(call.sandbox.clock.advance(aim["by"], to=aim["to"], until=aim["until"]).answer, _advanced)
    elif freeze:
        _freeze(call)
    elif rate is not None:
        _run(call, rate)
    else:
        call.show(call.sandbox.clock.read(), _clock)


@remote("freeze", example="clock freeze", parent=clock)
def freeze(call: Call) -> None:
    """Freeze the clock: time passes only when you advance it."""
    _freeze(call)


@remote("run", example="clock run --rate 3600", parent=clock)
@click.option("--rate", default=1.0, show_default=True, type=float, help="Sandbox seconds per real second.")
def run(call: Call, rate: float) -> None:
    """Let the clock run by itself."""
    _run(call, rate)


def _freeze(call: Call) -> None:
    call.sandbox.clock.freeze()
    call.show(call.sandbox.clock.read(), _clock)


def _run(call: Call, rate: float) -> None:
    call.sandbox.clock.run(rate)
    call.show(call.sandbox.clock.read(), _clock)


def _clock(found: "Clock") -> str:
    rate = f", {found['rate']:g} times as fast as real time" if found["rate"] != 1 else ""
    rate = rate if found["mode"] == "running" else ""
    return f"{found['now']} ({found['mode']}{rate})"


def _advanced(answer: Mapping[str, Any]) -> str:
    lines = [f"{event['at']}  {event['label']}" for event in answer["events"]]
    stopped = " (stopped early, advance again)" if answer.get("stopped") else ""
    return "\n".join([*lines, f"It is now {answer['to']}{stopped}."])
