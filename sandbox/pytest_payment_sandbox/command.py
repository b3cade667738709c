"""The commands ``rehearse``, for suites in any language, and ``explore``, for shops without tests."""

from pathlib import Path
from typing import Any

import click

from payment_sandbox.cli.annotations import format_option
from pytest_payment_sandbox.command_options import ShopOptions, SuiteOptions

only_option = click.option(
    "--only", multiple=True, metavar="VARIATION", help="Run these variations only: webhook:2:twice."
)
books_option = click.option(
    "--books", metavar="URL|COMMAND", help="Source of the shop's books: a JSON list of entries."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")


@click.command(epilog="Example: payment-sandbox rehearse -- npm test")
@click.option("--budget", default="60s", show_default=True, help="Time budget of all runs: 90s or 10m.")
@only_option
@click.option("--test", default="", metavar="NAME", help="Rehearse only tests whose names contain this text.")
@click.option("--one", metavar="COMMAND", help="Command for a single test: 'npx vitest run -t {test}'.")
@books_option
@click.option(
    "--pages", multiple=True, metavar="URL", help="Page about an order: http://localhost:3000/{order_id}."
)
@click.option("--continue", "resumes", is_flag=True, help="Resume the last rehearsal if it was stopped.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the findings to this .html or .json file.",
)
@json_option
@format_option
@click.argument("command", nargs=-1, required=True)
def rehearse(**options: Any) -> None:
    """Run a suite repeatedly, with one thing changed at a time.

    The suite gets a separate server at SANDBOX_URL, with the key in SANDBOX_API_KEY. Each test that uses
    the helpers for Node or PHP has its own verdict; without the helpers, the exit code is the verdict.
    The first run is unchanged, and must pass.
    """
    from pytest_payment_sandbox.command_runs import rehearse_suite

    rehearse_suite(SuiteOptions(**options))


@click.command(epilog="Example: payment-sandbox explore --shop http://localhost:3000 --buy buy.yaml")
@click.option("--shop", required=True, metavar="URL", help="URL of the shop, such as http://localhost:3000.")
@click.option(
    "--buy",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="YAML file with a customer's steps in the shop.",
)
@click.option(
    "--sandbox",
    default="http://127.0.0.1:8080",
    show_default=True,
    metavar="URL",
    help="Address at which this command serves the sandbox, as configured in the shop.",
)
@books_option
@click.option("--pages", multiple=True, metavar="URL", help="Page about an order: /sales/{order_id}.")
@click.option("--budget", default="5m", show_default=True, help="Time budget of all runs: 90s or 10m.")
@only_option
@click.option("--continue", "resumes", is_flag=True, help="Resume the last exploration if it was stopped.")
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    default="exploration.html",
    show_default=True,
    help="Write the findings, with pictures, to this .html or .json file.",
)
@json_option
@format_option
@click.argument("command", nargs=-1)
def explore(**options: Any) -> None:
    """Buy repeatedly in a shop without tests, with one thing changed at a time.

    Either the shop is running, and uses the sandbox at the address in --sandbox with the key sandbox-key; or
    COMMAND starts the shop, with SANDBOX_URL and SANDBOX_API_KEY. The verdict on each change comes from the
    shop's pages and, with --books, from the shop's books.
    """
    from pytest_payment_sandbox.command_runs import explore_shop

    explore_shop(ShopOptions(**options))
