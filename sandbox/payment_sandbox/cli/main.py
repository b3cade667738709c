"""The command line: ``payment-sandbox serve`` and the other commands."""

import gc
import signal
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from payment_sandbox.cli import mcp, remote
from payment_sandbox.cli.options import fail, say
from payment_sandbox.cli.serve import serve
from payment_sandbox.extensions import MCP_EXTRA, NotInstalled, missing_library
from payment_sandbox.forms.base import did_you_mean, nearest_word
from payment_sandbox.interrupts import exit_silently_on_interrupt, is_silent_on_interrupt
from payment_sandbox.loading import load_module
from payment_sandbox.operations import review_scenario
from payment_sandbox.orders.refusals import Invalid, Unknown
from payment_sandbox.version import __version__

PROGRAM: Final = "payment-sandbox"
SENTENCE_LENGTH_MAX: Final = 500
INTERRUPTED: Final = 130  # the exit code of shells after SIGINT


class Program(click.Group):
    """The commands; those for a running server are added when they are needed."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of all commands."""
        self.add_remote_commands()
        return super().list_commands(context)

    def get_command(self, context: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, if there is one with this name."""
        if cmd_name not in self.commands:
            self.add_remote_commands()
        return super().get_command(context, cmd_name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with whole sentences, on as many lines as needed."""
        names = self.list_commands(context)
        rows = [(name, self.commands[name].get_short_help_str(SENTENCE_LENGTH_MAX)) for name in names]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or suggest a similar one."""
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError as error:
            known = self.list_commands(context)
            nearest = nearest_word(arguments[0], known)
            advice = did_you_mean(nearest) or f"; the commands are: {', '.join(known)}"
            raise click.UsageError(f"there is no command {arguments[0]!r}{advice}", context) from error

    def add_remote_commands(self) -> None:
        """Add the commands for a running server; ``serve`` starts without loading them."""
        for command in remote.COMMANDS:
            self.add_command(command)


@click.group(cls=Program, invoke_without_command=True)
@click.version_option(__version__, prog_name=PROGRAM)
@click.pass_context
def commands(context: click.Context) -> None:
    """A sandbox of a payment-orders API, with a clock that you control."""
    if context.invoked_subcommand != serve.name and is_silent_on_interrupt():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # for cleanup; serve has its own handler
    if context.invoked_subcommand != serve.name:
        gc.enable()
    if context.invoked_subcommand is None:
        say(*context.get_help().split("\n"), to_stderr=True)
        context.exit(2)


@commands.command(epilog="Example: payment-sandbox check second-try.yaml")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def check(files: tuple[Path, ...]) -> None:
    """Check scenario files: print every mistake, and warn about rules that never match."""
    invalid_count = 0
    for file in files:
        try:
            scenario, warnings = review_scenario.check_file(file)
            lines = [
                warning._replace(message=f"warning: {warning.message}").as_line() for warning in warnings
            ]
            say(*lines, f"{file}: {scenario.name} is fine, rules: {len(scenario.rules)}")
        except Invalid as invalid:
            invalid_count += 1
            say(*(violation.as_line() for violation in invalid.violations))
    sys.exit(1 if invalid_count else 0)


@commands.command(epilog="Example: payment-sandbox docs mistakes#read-the-order")
@click.argument("section", default="agents")
def docs(section: str) -> None:
    """Print a page of the documentation or a section of it."""
    try:
        say(*load_module("payment_sandbox.ui.docs.sections").section(section).split("\n"))
    except Unknown as unknown:
        raise click.ClickException(str(unknown)) from unknown


@commands.command("mcp", epilog="Example: payment-sandbox mcp")
def mcp_command() -> None:
    """Offer the sandbox as tools to coding agents, over standard input and output."""
    try:
        run = mcp.run
    except ModuleNotFoundError:
        fail(str(NotInstalled("mcp", MCP_EXTRA)))
    run()


commands.add_command(serve)


def _with_example(error: click.ClickException) -> str:
    """Return the message on one line, with the command's example unless an option is wrong."""
    message = " ".join(error.format_message().split())
    param, context = getattr(error, "param", None), getattr(error, "ctx", None)
    is_wrong_value = isinstance(param, click.Option) and not isinstance(error, click.MissingParameter)
    is_clear = is_wrong_value or isinstance(error, click.NoSuchOption)
    example = context.command.epilog if context is not None and not is_clear else None
    return f"{message.rstrip('.')}. {example}" if example else message


def main() -> NoReturn:
    """Run a command; report a usage error on one line, and exit silently on Ctrl-C."""
    try:
        _run_command()
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)


def _run_command() -> NoReturn:
    try:
        code = commands.main(prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        fail(_with_example(error))
    except OSError as error:
        fail(f"cannot write: {error.strerror}" if error.strerror else str(error))
    except ModuleNotFoundError as error:
        fail(str(missing_library(error)))
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            exit_silently_on_interrupt()  # cleanup is complete
    sys.exit(code if isinstance(code, int) else 0)
