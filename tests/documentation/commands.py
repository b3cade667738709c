"""The reference of the command line, from the commands themselves."""

from collections.abc import Iterator
from inspect import cleandoc
from typing import Final

import click

from payment_sandbox.cli.main import commands
from payment_sandbox.cli.remote.command_run import COMMON_OPTIONS
from tests.documentation.tables import table

COMMON: Final = (*COMMON_OPTIONS, "as_json")
"""Options that the page explains once."""


def commands_reference() -> str:
    """Describe each command and its options."""
    context = click.Context(commands, info_name="payment-sandbox")
    return "\n\n".join(_describe_commands(commands, context, "###"))


def _describe_commands(group: click.Group, context: click.Context, heading: str) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield f"{heading} {inner.command_path.partition(' ')[2]}"
        usage = " ".join(command.collect_usage_pieces(inner))
        yield f"`{inner.command_path} {usage}`"
        yield cleandoc(command.help or "")
        options = [_describe_option(each) for each in command.params if _is_listed(each)]
        if options:
            yield table(("Option", "Meaning"), options)
        if isinstance(command, click.Group):
            yield from _describe_commands(command, inner, f"{heading}#")


def _is_listed(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.hidden and parameter.name not in COMMON


def _describe_option(option: click.Parameter) -> tuple[str, str]:
    assert isinstance(option, click.Option), "arguments are in the usage"
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    values = " or ".join(f"`{each}`" for each in getattr(option.type, "choices", ()))
    details = [option.help or "", f"One of {values}." if values else ""]
    return names, " ".join(filter(None, details))
