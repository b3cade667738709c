"""The generated parts of the clients: each call of the control API as a method, from its declared command."""

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from inspect import getdoc
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

import payment_sandbox
from payment_sandbox.forms import PeriodText
from payment_sandbox.web.answers import records
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.control.declaring import Body, CommandParameter, ControlCommand, Listed

PACKAGE: Final = Path(payment_sandbox.__file__).parent
PYTHON_CLIENT: Final = PACKAGE / "client" / "control_commands.py"
NOTE: Final = "``make docs`` writes this file from the functions in ``web/control``."
PYTHON_HEAD: Final = f'''"""The calls of the control API, one method for each.

{NOTE}
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import path_of, to_seconds, without_none
from payment_sandbox.web.answers import records as answers

Json = dict[str, Any]

__tracebackhide__ = ends_at_caller


class ControlCommands:
    """One project of a running sandbox: each method is a call of the control API.

    Every method raises ``SandboxError`` if the server refuses the call.
    """

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Make any call; return the parsed body."""
        raise NotImplementedError
'''


def called() -> Iterator[ControlCommand]:
    """Yield the commands that answer once; clients read the stream of events in their own ways."""
    return (each for each in COMMANDS.values() if not each.is_stream)


def python_client() -> str:
    """Return the module of the Python client."""
    text = PYTHON_HEAD + "".join(f"\n{_python_method(each)}" for each in called())
    ruff = [sys.executable, "-m", "ruff", "format", "--line-length", "110", "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def _python_method(made: ControlCommand) -> str:
    shown = sorted(made.shown, key=lambda each: (not each.is_required, each.is_keyword))
    parts = ["self"]
    for each in shown:
        parts += ["*"] if each.is_keyword and "*" not in parts else []
        kind = _python_type(each)
        parts.append(f"{each.name}: {kind}" if each.is_required else f"{each.name}: {kind} | None = None")
    arguments = [repr(made.method), _python_path(made), *_python_values(made)]
    answer = f"self.call({', '.join(arguments)})" + (f"[{made.unwraps!r}]" if made.unwraps else "")
    kind = _python_answer(made)
    about = "\n        ".join((getdoc(made.run) or "").splitlines())
    return (
        f"    def {made.name}({', '.join(parts)}) -> {kind}:\n"
        f'        """{about}{chr(10) + "        " if chr(10) in about else ""}"""\n'
        f"        answer: {kind} = {answer}\n"
        "        return answer\n"
    )


def _python_path(made: ControlCommand) -> str:
    names = [each.name for each in made.parameters if each.is_in_path]
    path = re.sub(r"<\w+>", "{}", made.path)
    return f"path_of({', '.join([repr(path), *names])})" if names else repr(path)


def _python_values(made: ControlCommand) -> list[str]:
    sent = [each for each in made.shown if not each.is_in_path]
    if made.document is not None:
        return [f"body={sent[0].name}"]
    values = ", ".join(
        f"{each.key}={f'None if {each.name} is None else to_seconds({each.name})' if _is_seconds(each) else each.name}"
        for each in sent
    )
    where = "query" if made.method == "GET" else "body"
    return [f"{where}=without_none({values})"] if sent else []


def _is_seconds(parameter: CommandParameter) -> bool:
    return parameter.name.endswith("_seconds")


def _python_type(parameter: CommandParameter) -> str:
    if any(isinstance(note, Body) for note in parameter.notes):
        return "Mapping[str, Any]"
    if get_origin(parameter.kind) is Literal:
        kind = f"Literal[{', '.join(map(repr, get_args(parameter.kind)))}]"
    elif parameter.kind is datetime:
        kind = "datetime | str"
    elif _is_seconds(parameter):
        kind = "float | timedelta"
    else:
        is_period = not parameter.is_in_path and isinstance(parameter.field(), PeriodText)
        kind = "timedelta | str" if is_period else parameter.kind.__name__
    return f"Annotated[{kind}, {parameter.about!r}]" if parameter.about else kind


def _python_answer(made: ControlCommand) -> str:
    hint = made.answers
    if made.unwraps is not None and get_origin(hint) is not Listed:
        hint = get_type_hints(hint)[made.unwraps]
    if get_origin(hint) in (list, Listed):
        return f"list[{_record_name(get_args(hint)[0])}]"
    return _record_name(hint)


def _record_name(record: Any) -> str:
    if record in (str, int, bool, float):
        return str(record.__name__)
    is_known = is_typeddict(record) and getattr(records, record.__name__, None) is record
    return f"answers.{record.__name__}" if is_known else "Json"


def generated_clients() -> Iterator[tuple[Path, str]]:
    """Yield each generated file of the clients with its text."""
    yield PYTHON_CLIENT, python_client()
