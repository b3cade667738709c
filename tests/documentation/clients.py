"""The generated parts of the clients: each call of the control API as a method, from its declared command."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from inspect import getdoc
from pathlib import Path
from types import GenericAlias
from typing import Any, Final, Literal, get_args, get_origin, is_typeddict

import payment_sandbox
from payment_sandbox.forms import PeriodText
from payment_sandbox.orders.order import Order
from payment_sandbox.web.answers import records
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.control.declaring import CommandParameter, ControlCommand, Listed

PACKAGE: Final = Path(payment_sandbox.__file__).parent
PYTHON_CLIENT: Final = PACKAGE / "client" / "control_commands.py"
NOTE: Final = "``make docs`` writes this file from the functions in ``web/control``."
PYTHON_HEAD: Final = f'''"""The calls of the control API, one method for each.

{NOTE}
"""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import without_none
from payment_sandbox.web.answers import records as answers

__tracebackhide__ = ends_at_caller


class ControlCommands:
    """One project of a running sandbox: each method is a call of the control API.

    Every method raises ``SandboxError`` if the server refuses the call.
    """

    def call(self, method: str, path: str, body: Any = None, query: dict[str, Any] | None = None) -> Any:
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
    required = [each for each in made.parameters if each.is_required]
    optional = [each for each in made.parameters if not each.is_required]
    parts = ["self", *(f"{each.name}: {_python_type(each)}" for each in required), *["*"][: len(optional)]]
    parts += [f"{each.name}: {_python_type(each)} | None = None" for each in optional]
    in_path = {each.name for each in made.parameters if each.is_in_path}
    path = made.path.replace("<", "{").replace(">", "}")
    sent = [each for each in made.parameters if not each.is_in_path]
    values = ", ".join(f"{each.key}={each.name}" for each in sent)
    if made.document is not None:
        values = f"body={sent[0].name}"
    elif sent:
        values = f"{'query' if made.method == 'GET' else 'body'}=without_none({values})"
    arguments = [f'"{made.method}"', f'{"f" if in_path else ""}"{path}"', *([values] if values else [])]
    answer = f"self.call({', '.join(arguments)})" + (f'["{made.unwraps}"]' if made.unwraps else "")
    about = "\n        ".join((getdoc(made.run) or "").splitlines())
    kind = _python_answer(made)
    return (
        f"    def {made.name}({', '.join(parts)}) -> {kind}:\n"
        f'        """{about}{chr(10) + "        " if chr(10) in about else ""}"""\n'
        f"        return {answer}\n"
    )


def _python_type(parameter: CommandParameter) -> str:
    if get_origin(parameter.kind) is Literal:
        kind = f"Literal[{', '.join(map(repr, get_args(parameter.kind)))}]"
    elif parameter.kind is datetime:
        kind = "datetime | str"
    elif isinstance(parameter.field(), PeriodText):
        kind = "timedelta | str"
    else:
        kind = "dict[str, Any]" if isinstance(parameter.kind, GenericAlias) else parameter.kind.__name__
    return f"Annotated[{kind}, {parameter.about!r}]" if parameter.about else kind


def _python_answer(made: ControlCommand) -> str:
    answers = made.answers
    if get_origin(answers) is Listed:
        return f"list[{_record_name(get_args(answers)[0])}]"
    if made.unwraps is not None:
        hint = answers.__annotations__[made.unwraps]
        return (
            str(getattr(get_args(hint)[0], "__name__", get_args(hint)[0]))
            if get_args(hint)
            else hint.__name__
        )
    return _record_name(answers)


def _record_name(record: Any) -> str:
    if record is Order or not is_typeddict(record):
        return "answers.Json"
    assert getattr(records, record.__name__) is record, f"{record.__name__} is not among the records"
    return f"answers.{record.__name__}"


def generated_clients() -> Iterator[tuple[Path, str]]:
    """Yield each generated file of the clients with its text."""
    yield PYTHON_CLIENT, python_client()
