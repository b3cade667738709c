"""The command that compares another server with the sandbox."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from payment_sandbox.cli.options import Port, SecondsOption
from payment_sandbox.loading import lazy

if TYPE_CHECKING:
    from payment_sandbox import methods
    from payment_sandbox_verify import terminal
else:
    methods = lazy("payment_sandbox.methods")
    terminal = lazy("payment_sandbox_verify.terminal")

file_path = click.Path(path_type=Path, dir_okay=False)


def _parse_method_names(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Parse values such as ``bank-redirect-nl=my-bank-button``."""
    names: dict[str, str] = {}
    for text in values:
        name, _, account_name = text.partition("=")
        if name not in methods.METHOD_NAMES or not account_name:
            raise click.BadParameter(
                f"{text!r} is not of the form bank-redirect-nl=my-bank-button; "
                f"the methods are {', '.join(methods.METHOD_NAMES)}"
            )
        if account_name in names.values():
            raise click.BadParameter(f"{account_name!r} can be the name of only one method")
        names[name] = account_name
    return names


method_names = click.option(
    "--method",
    "methods",
    multiple=True,
    callback=_parse_method_names,
    metavar="NAME=THEIRS",
    help="The account's own name for a payment method; may be given several times.",
)


@click.command(
    epilog="Example: payment-sandbox verify --url https://api.provider.example --key test_key "
    "--differences differences.yaml"
)
@click.option("--url", required=True, help="The server: the provider's test mode, or another sandbox.")
@click.option("--key", required=True, envvar="SANDBOX_API_KEY", help="The API key of a test account.")
@click.option("--differences", type=file_path, help="Write settings that reproduce the differences here.")
@click.option("--clean-up", is_flag=True, help="Only clean up the orders that remain from earlier runs.")
@click.option("--yes-live", is_flag=True, help="Continue in live mode, without moving money.")
@click.option(
    "--test", "is_test", is_flag=True, help="The server is in test mode, but its orders have no flag for it."
)
@click.option(
    "--rate",
    type=SecondsOption(0.1, 1000),
    help="Maximum calls per second; 5 by default, unlimited for a server on this machine.",
)
@click.option("--by-hand", is_flag=True, help="Ask you to pay in a browser when a program cannot.")
@click.option("--webhook-url", help="The public URL at which this machine receives the server's webhooks.")
@click.option(
    "--webhook-port",
    type=Port(0, 65535),
    default=0,
    help="The local port that receives webhooks; 0 selects a free port.",
)
@click.option("--patient", is_flag=True, help="Also wait for webhook retries, which takes another half hour.")
@click.option("--ca", type=file_path, help="A file of certificates to trust for HTTPS.")
@method_names
@click.option("--by-rule", is_flag=True, help="List each rule, also those that agree or were not compared.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify(as_json: bool, **options: Any) -> None:
    """Play one conversation on a server that implements this API and on a sandbox, and list where their
    answers differ.

    The command creates test orders and cancels or refunds them; it stops if they are not test orders. The
    exit code is 1 if the server deviates from a rule.
    """
    terminal.verify(options, as_json=as_json)
