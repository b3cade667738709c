"""The reference of the command line, from the commands themselves."""

from collections.abc import Iterator
from inspect import cleandoc

import click

from payment_sandbox.cli.main import commands
from payment_sandbox.cli.remote.declaring import COMMON
from tests.documentation.tables import table


def commands_reference() -> str:
    """Describe each command and its options."""
    context = click.Context(commands, info_name="payment-sandbox")
    return "\n\n".join(_describe_commands(context))


def _describe_commands(context: click.Context) -> Iterator[str]:
    for name in commands.list_commands(context):
        command = commands.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield f"### {name}"
        usage = " ".join(command.collect_usage_pieces(inner))
        yield f"`{inner.command_path} {usage}`"
        yield cleandoc(command.help or "")
        options = [_describe_option(each) for each in command.params if _is_listed(each)]
        if options:
            yield table(("Option", "Meaning"), options)


def _is_listed(parameter: click.Parameter) -> bool:
    """Whether the reference lists a parameter; the page explains the common options once."""
    return isinstance(parameter, click.Option) and parameter not in COMMON


def _describe_option(option: click.Parameter) -> tuple[str, str]:
    assert isinstance(option, click.Option), "arguments are in the usage"
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    values = " or ".join(f"`{each}`" for each in getattr(option.type, "choices", ()))
    details = [option.help or "", f"One of {values}." if values else ""]
    return names, " ".join(filter(None, details))
