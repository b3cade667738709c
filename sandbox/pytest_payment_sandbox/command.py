"""The command ``rehearse``, for suites in any language."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from payment_sandbox.loading import lazy

if TYPE_CHECKING:
    from pytest_payment_sandbox import command_runs
else:
    command_runs = lazy("pytest_payment_sandbox.command_runs")


@click.command(epilog="Example: payment-sandbox rehearse -- npm test")
@click.option("--budget", default="60s", show_default=True, help="Time budget of all runs: 90s or 10m.")
@click.option(
    "--only", multiple=True, metavar="VARIATION", help="Run these variations only: webhook:2:twice."
)
@click.option("--test", default="", metavar="NAME", help="Rehearse only tests whose names contain this text.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the findings to this .json file.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.argument("command", nargs=-1, required=True)
def rehearse(**options: Any) -> None:
    """Run a suite repeatedly, with one thing changed at a time.

    The suite gets a separate server at SANDBOX_URL, with the key in SANDBOX_API_KEY. Each test that uses
    the helpers for Node or PHP has its own verdict; without the helpers, the exit code is the verdict.
    The first run is unchanged, and must pass.
    """
    command_runs.rehearse_suite(command_runs.SuiteOptions(**options))
