"""The reference of the Python classes, from their source: signatures, docstrings and attributes.

The source is read and not imported, because test suites need these classes and the server does not.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from inspect import cleandoc
from typing import Final

CLASSES: Final = (  # in reading order: the module, the class
    ("testing/project.py", "PaymentSandbox"),
    ("testing/shop.py", "ShopInProcess"),
    ("testing/shops/browser.py", "Browser"),
    ("client/clock.py", "SandboxClock"),
    ("client/clock.py", "Advance"),
    ("testing/aio.py", "AsyncPaymentSandbox"),
    ("testing/aio.py", "AsyncClock"),
    ("client/receiver.py", "WebhookReceiver"),
    ("client/receiver.py", "ReceivedWebhook"),
    ("testing/unittesting.py", "PaymentSandboxMixin"),
    ("testing/servers.py", "PaymentSandboxServer"),
    ("client/client.py", "SandboxClient"),
    ("client/calling.py", "Calls"),
    ("client/errors.py", "SandboxError"),
    ("client/errors.py", "Violation"),
    ("client/review.py", "Review"),
    ("operations/review/evidence.py", "Finding"),
)
PROPERTIES: Final = ("property", "cached_property")
LITERAL: Final = re.compile(r"``(.+?)``", re.DOTALL)
NAME: Final = re.compile(r"\b[A-Z][A-Z_]+\b")
RAISES: Final = "Raises:"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_reference() -> str:
    """The classes as Markdown."""
    return "\n\n".join(_class(_parsed(file, name), _constants(file)) for file, name in CLASSES)


@cache
def _module(file: str) -> ast.Module:
    return ast.parse(files("payment_sandbox").joinpath(*file.split("/")).read_text(encoding="utf-8"))


def _constants(file: str) -> dict[str, str]:
    """The values of a module's constants, which defaults name."""
    return {
        node.target.id: ast.unparse(node.value)
        for node in _module(file).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _parsed(file: str, name: str) -> ast.ClassDef:
    return next(node for node in _module(file).body if isinstance(node, ast.ClassDef) and node.name == name)


def _class(found: ast.ClassDef, constants: Mapping[str, str]) -> str:
    parts = [f"### {found.name}", _prose(ast.get_docstring(found))]
    methods = [node for node in found.body if isinstance(node, Function)]
    fields = list(_attributes(found.body))
    for method in methods:
        if method.name == "__init__":
            fields += _attributes(method.body)
            text = ast.get_docstring(method)  # of a class that users create
            parts += [f"`{_signature(method, found.name, constants)}`", _prose(text)] if text else []
    parts.append("\n".join(f"- `{name}`{f': {_prose(text)}' if text else ''}" for name, text in fields))
    parts += [_method(method, constants) for method in methods if not method.name.startswith("_")]
    return "\n\n".join(filter(None, parts))


def _attributes(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The public attributes, with the text that follows them; of ``self``, those that have a text."""
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        text, target = _text(after), _target(statement)
        if isinstance(statement, ast.AnnAssign) and isinstance(target, ast.Name):
            yield f".{target.id}: {_kind(statement.annotation)}", text
        elif text and isinstance(target, ast.Attribute):
            yield f".{target.attr}", text


def _target(statement: ast.stmt) -> ast.expr | None:
    """What a statement assigns to, if it is public."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    name = target.attr if isinstance(target, ast.Attribute) else ast.unparse(target)
    return None if name.startswith("_") else target


def _kind(annotation: ast.expr) -> str:
    kind = ast.unparse(annotation)
    return kind.removeprefix("ClassVar[").removesuffix("]") if kind.startswith("ClassVar[") else kind


def _text(statement: ast.stmt) -> str:
    """The text that a statement is, if it is one."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return cleandoc(str(statement.value.value))
    return ""


def _method(method: Function, constants: Mapping[str, str]) -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    name = (
        f".{method.name}"
        if decorators & set(PROPERTIES)
        else _signature(method, f".{method.name}", constants)
    )
    prefix = "await " if isinstance(method, ast.AsyncFunctionDef) else ""
    return f"#### `{prefix}{name}`\n\n{_prose(ast.get_docstring(method))}"


def _signature(method: Function, name: str, constants: Mapping[str, str]) -> str:
    """A call with its parameters and their types, on one line."""
    given = method.args
    given = ast.arguments(
        posonlyargs=[arg for arg in given.posonlyargs if arg.arg != "self"],
        args=[arg for arg in given.args if arg.arg != "self"],
        vararg=given.vararg,
        kwonlyargs=given.kwonlyargs,
        kw_defaults=given.kw_defaults,
        kwarg=given.kwarg,
        defaults=given.defaults,
    )
    returned = (
        ast.unparse(method.returns).strip("'\"").removeprefix("answers.")
        if method.returns is not None
        else "None"
    )
    shown = NAME.sub(lambda found: constants.get(found[0], found[0]), f"{name}({ast.unparse(given)})")
    shown = shown.replace("'", '"')
    return shown if returned == "None" else f"{shown} -> {returned.replace('answers.', '')}"


def _prose(text: str | None) -> str:
    """A docstring as Markdown; what it raises becomes a list."""
    body, raises, errors = LITERAL.sub(r"`\1`", text or "").partition(RAISES)
    if not raises:
        return body.strip()
    listed = cleandoc(errors.strip("\n")).replace("\n    ", " ")
    items = [re.sub(r"^(\w+):", r"- raises `\1`:", line) for line in listed.splitlines() if line]
    return f"{body.strip()}\n\n" + "\n".join(items)
