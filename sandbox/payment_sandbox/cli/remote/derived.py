"""The commands that follow from the methods of the client: the arguments, options and help of each call."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import click

from payment_sandbox.cli.remote.command_run import NEWEST, CommandRun, format_table, order_ids, remote
from payment_sandbox.client.control_commands import ControlCommands

ORDER: Final = "order_id"
BASE_NAMES: Final = ("call",)
PLAIN: Final = (str, int, float, bool)
RULE_IDS: Final = re.compile(r" \([A-Z]+-[^)]*\)")


def declare_commands(covered: frozenset[str]) -> None:
    """Declare a command for each call of the control API that no other command covers."""
    for name, method in vars(ControlCommands).items():
        if not name.startswith("_") and name not in (*BASE_NAMES, *covered):
            _declare_command(name, method)


def _declare_command(name: str, method: Callable[..., Any]) -> None:
    hints = get_type_hints(method, include_extras=True)
    known = [each for each in signature(method).parameters.values() if each.name != "self"]
    needed = [each.name for each in known if each.default is Parameter.empty]
    words = [NEWEST if each == ORDER else each.upper() for each in needed]

    def run(call: CommandRun, **given: Any) -> None:
        for each in known:
            if each.name == ORDER and given[ORDER] is not None:
                given[ORDER] = call.order_id(given[ORDER])
            elif isinstance(given[each.name], Path):
                given[each.name] = json.loads(call.read(given[each.name]))
        call.show(getattr(call.sandbox, name)(**given), _format_answer)

    run.__doc__ = RULE_IDS.sub("", getdoc(method) or "")
    shell_name = name.replace("_", "-")
    command: click.Command = remote(shell_name, example=" ".join([shell_name, *words]))(run)
    command.params[:0] = [_parameter(each, hints[each.name]) for each in known]


def _parameter(parameter: Parameter, hint: Any) -> click.Parameter:
    kind, about = _plain(hint)
    shown: Any = kind if kind in PLAIN else str
    if kind is dict:
        shown = click.Path(path_type=Path, dir_okay=False)
    elif get_origin(kind) is Literal:
        shown = click.Choice(get_args(kind))
    completion: dict[str, Any] = {"shell_complete": order_ids} if parameter.name == ORDER else {}
    if parameter.default is Parameter.empty:
        return click.Argument([parameter.name], type=shown, **completion)
    option = f"--{parameter.name.replace('_', '-')}"
    if kind is bool:
        return click.Option([option], is_flag=True, default=None, help=about)
    return click.Option([option], type=shown, help=about, **completion)


def _plain(hint: Any) -> tuple[Any, str]:
    """Return the plain type of a hint, and its description; of several types, the one that words can give."""
    if get_origin(hint) is Annotated:
        return _plain(get_args(hint)[0])[0], get_args(hint)[1]
    variants = [each for each in get_args(hint) if each is not NoneType]
    if get_origin(hint) in (Literal, None) or not variants:
        return hint, ""
    if get_origin(hint) is Mapping:
        return dict, ""
    return _plain(str if str in variants else variants[0])


def _format_answer(answer: Any) -> str:
    """Format a list as a table of its plain values, and an object as lines."""
    if isinstance(answer, dict):
        return "\n".join(_lines(answer))
    if not isinstance(answer, list) or not all(isinstance(item, dict) for item in answer):
        return "\n".join(map(str, answer)) if isinstance(answer, list) else str(answer)
    keys = list(dict.fromkeys(key for item in answer for key in item if _is_plain(item[key])))
    return format_table(([item.get(key) for key in keys] for item in answer), keys, "nothing")


def _lines(answer: dict[str, Any]) -> Iterator[str]:
    for key, value in answer.items():
        if _is_plain(value) or isinstance(value, list):
            yield f"{key}: {len(value) if isinstance(value, list) else value}"


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""
