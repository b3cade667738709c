"""The generated parts of the clients: each call of the control API as a method, from its declared command."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from inspect import getdoc
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

import payment_sandbox
from payment_sandbox.client.client import CONTROL_TOKEN_PATHS
from payment_sandbox.forms import PeriodText
from payment_sandbox.orders.order import Order
from payment_sandbox.web.answers import records
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.control.declaring import Body, CommandParameter, ControlCommand, Listed

PACKAGE: Final = Path(payment_sandbox.__file__).parent
OTHERS: Final = PACKAGE.parent
PYTHON_CLIENT: Final = PACKAGE / "client" / "control_commands.py"
SLOT: Final = "@@CALLS@@"


def filled(name: str, calls: Iterable[str]) -> str:
    """Return a file from its template, with the calls in their slot."""
    template = Path(__file__).parent / "templates" / f"{name}.template"
    return template.read_text(encoding="utf-8").replace(SLOT, "".join(calls))


def called() -> Iterator[ControlCommand]:
    """Yield the commands that answer once; clients read the stream of events in their own ways."""
    return (each for each in COMMANDS.values() if not each.is_stream)


def of_a_project() -> Iterator[ControlCommand]:
    """Yield the commands for one project; the clients for Node and PHP have one for each test."""
    return (each for each in called() if each.path not in CONTROL_TOKEN_PATHS)


def python_client() -> str:
    """Return the module of the Python client."""
    text = filled("control_commands.py", (f"\n{_python_method(each)}" for each in called()))
    ruff = [sys.executable, "-m", "ruff", "format", "--line-length", "110", "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


def _python_method(made: ControlCommand) -> str:
    shown = sorted(made.shown, key=lambda each: (not each.is_required, each.is_keyword))
    parts = ["self"]
    for each in shown:
        parts += ["*"] if each.is_keyword and "*" not in parts else []
        kind = _python_type(each)
        parts.append(f"{each.name}: {kind}" if each.is_required else f"{each.name}: {kind} | None = None")
    kind = _python_answer(made)
    about = "\n        ".join((getdoc(made.run) or "").splitlines())
    return (
        f"    @control_call({', '.join(_call_facts(made))})\n"
        f"    def {made.name}({', '.join(parts)}) -> {kind}:\n"
        f'        """{about}{chr(10) + "        " if chr(10) in about else ""}"""\n'
    )


def _call_facts(made: ControlCommand) -> Iterator[str]:
    yield repr(made.method)
    yield repr(re.sub(r"<\w+>", "{}", made.path))
    if made.unwraps is not None:
        yield repr(made.unwraps)
    if made.document is not None:
        yield "is_document=True"
    yield from (f"{name}={key!r}" for key, name in made.names.items())


def _is_seconds(parameter: CommandParameter) -> bool:
    return parameter.name.endswith("_seconds")


def _python_type(parameter: CommandParameter) -> str:
    if any(isinstance(note, Body) for note in parameter.notes):
        return "Document"
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


TYPES: Final = {str: "string", int: "number", float: "number", bool: "boolean", datetime: "string"}
KNOWN_IN_NODE: Final = {"Order": "Order", "Webhook": "Webhook", "Advance": "Advance"}


def node_client() -> str:
    """Return the module of the client for Node."""
    rows = ((camel_case(each.name), [each.method, each.path, each.unwraps]) for each in of_a_project())
    return filled("control.js", (f"  {name}: {json.dumps(row)},\n" for name, row in rows))


def node_types() -> str:
    """Return the type declarations of the client for Node."""
    return filled("control.d.ts", map(_node_method, of_a_project()))


def _node_method(made: ControlCommand) -> str:
    in_path = [f"{camel_case(each.name)}: string" for each in made.shown if each.is_in_path]
    sent = [each for each in made.shown if not each.is_in_path]
    if made.document is not None:
        in_path.append(f"{sent[0].name}: Json")
    elif sent:
        values = "; ".join(
            f"{each.key}{'' if each.is_required else '?'}: {_node_type(each)}" for each in sent
        )
        optional = "" if any(each.is_required for each in sent) else "?"
        in_path.append(f"given{optional}: {{ {values} }}")
    about = (getdoc(made.run) or "").splitlines()[0]
    return (
        f"  /** {about} */\n  {camel_case(made.name)}({', '.join(in_path)}): Promise<{_node_answer(made)}>;\n"
    )


def _node_type(parameter: CommandParameter) -> str:
    if get_origin(parameter.kind) is Literal:
        return " | ".join(map(json.dumps, get_args(parameter.kind)))
    return TYPES[parameter.kind]


def _node_answer(made: ControlCommand) -> str:
    hint = _python_answer(made).replace("answers.", "")
    item = hint.removeprefix("list[").removesuffix("]")
    name = {"str": "string", "bool": "boolean"}.get(item, KNOWN_IN_NODE.get(item, "Json"))
    name = "Order" if made.answers is Order else name
    return f"{name}[]" if hint.startswith("list[") else name


def camel_case(name: str) -> str:
    """Return a name as JavaScript and PHP write it."""
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


def php_client() -> str:
    """Return the class of the client for PHP."""
    return filled("ControlCommands.php", map(_php_method, of_a_project()))


def _php_method(made: ControlCommand) -> str:
    ids = [f"${camel_case(each.name)}" for each in made.shown if each.is_in_path]
    sent = [each for each in made.shown if not each.is_in_path]
    needed = any(each.is_required for each in sent)
    parts = [
        *(f"string {each}" for each in ids),
        *([f"array $given{'' if needed else ' = []'}"] if sent else []),
    ]
    path = re.sub(r"<\w+>", "%s", made.path)
    arguments = [f"'{made.method}'", f"'{path}'", f"[{', '.join(ids)}]"]
    if sent:
        arguments.append("$given" if made.method == "GET" else "body: $given")
    kind = {"str": "string", "bool": "bool"}.get(_python_answer(made), "array")
    answer = f"$this->run({', '.join(arguments)})" + (f"['{made.unwraps}']" if made.unwraps else "")
    keys = ", ".join(f"{each.key}{'' if each.is_required else '?'}: {_php_type(each)}" for each in sent)
    given = f"array{{{keys}}}" if made.document is None else "array<string, mixed>"
    notes = [(getdoc(made.run) or "").splitlines()[0], *([f"@param {given} $given"] if sent else [])]
    notes += ["@return array<mixed>"] if kind == "array" else []
    comment = "".join(f"     * {each}\n" for each in notes)
    return (
        f"\n    /**\n{comment}     */\n    public function {camel_case(made.name)}({', '.join(parts)}): {kind}\n"
        f"    {{\n        return {answer};\n    }}\n"
    )


def _php_type(parameter: CommandParameter) -> str:
    kind = str if get_origin(parameter.kind) is Literal else parameter.kind
    return {int: "int", float: "float", bool: "bool"}.get(kind, "string")


def generated_clients() -> Iterator[tuple[Path, str]]:
    """Yield each generated file of the clients with its text."""
    yield PYTHON_CLIENT, python_client()
    yield OTHERS / "node" / "control.js", node_client()
    yield OTHERS / "node" / "control.d.ts", node_types()
    yield OTHERS / "php" / "src" / "ControlCommands.php", php_client()
