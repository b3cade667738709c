"""Finds the line of a shop that decided to make a call, rather than a function that passes the call on."""

import ast
import re
from collections.abc import Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Final

from payment_sandbox.testing.shops.tracebacks import LIBRARY_FOLDERS, POSTING_MODULE, stack_frames

PYTHON_SUFFIX: Final = ".py"
FOREIGN_PATHS: Final = ("vendor/", "site-packages/", "/lib/python", "payment_sandbox/")
_FRAME_PATTERN: Final = re.compile(r'File "([^"]+)", line (\d+)')

SourceLine = tuple[str, str]
"""A file with its absolute path, and a line number."""


def current_lines() -> list[SourceLine]:
    """Return the lines of the shop in the current call, innermost first, up to the webhook handler."""
    lines: list[SourceLine] = []
    for code, number in stack_frames():
        if code.co_filename == POSTING_MODULE:
            break
        if not _is_foreign(code.co_filename):
            lines.append((code.co_filename, str(number)))
    return lines


def shop_lines(text: str) -> list[SourceLine]:
    """Return the shop's lines in the tracebacks in a text, innermost first."""
    frames: list[SourceLine] = _FRAME_PATTERN.findall(text)
    return [frame for frame in reversed(frames) if not _is_foreign(frame[0])]


@lru_cache(maxsize=1024)
def _is_foreign(file: str) -> bool:
    """Whether a file belongs to a library or a test."""
    is_foreign = file.startswith((*LIBRARY_FOLDERS, "<")) or any(each in file for each in FOREIGN_PATHS)
    return is_foreign or "test" in Path(file).name.lower()


LOG_NAMES: Final = ("log", "logger", "logging", "print", "sleep", "time", "warnings")
PLAIN_STATEMENTS: Final = (
    ast.AnnAssign,
    ast.AsyncFor,
    ast.AsyncWith,
    ast.Expr,
    ast.For,
    ast.If,
    ast.Import,
    ast.ImportFrom,
    ast.Pass,
    ast.Break,
    ast.Continue,
    ast.Raise,
    ast.Return,
    ast.Try,
    ast.While,
    ast.With,
)
"""The statements of a function that passes a call on, with retries, time limits and errors."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def innermost_decision(lines: Sequence[SourceLine]) -> SourceLine | None:
    """Return the innermost line whose function does more than to pass the call on.

    A test or a framework has called the outermost function, so that one decides if all others pass it on.
    """
    return next((line for line in lines if not _passes_on(*line)), next(iter(lines[-1:]), None))


def _passes_on(file: str, line: str) -> bool:
    """Whether the function around a line returns the result of its call, and does nothing else."""
    function = _function_at(file, int(line))
    if function is None or function.decorator_list:
        return False
    parts = list(ast.walk(function))[1:]
    local = {each.id for each in parts if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    local |= {function.args.kwarg.arg} if function.args.kwarg is not None else set()
    own = [each for each in parts if isinstance(each, ast.stmt)]
    return any(map(_returns_result, own)) and all(_is_plain(each, local) for each in own)


def _returns_result(statement: ast.stmt) -> bool:
    """Whether a statement returns the result of a call, or a part of it; a comparison is a decision."""
    value = statement.value if isinstance(statement, ast.Return) else None
    while isinstance(value, ast.Await | ast.Subscript | ast.Attribute | ast.IfExp | ast.BoolOp):
        value = _result_part(value)
    return isinstance(value, ast.Call | ast.Name)


def _result_part(value: ast.Await | ast.Subscript | ast.Attribute | ast.IfExp | ast.BoolOp) -> ast.expr:
    """Return the part of an expression with the result; the rest stands for an empty response."""
    if isinstance(value, ast.IfExp):
        return value.orelse if isinstance(value.body, ast.Constant) else value.body
    return value.values[0] if isinstance(value, ast.BoolOp) else value.value


def _is_plain(statement: ast.stmt, local: Set[str]) -> bool:
    """Whether a statement has no effect outside its function, apart from calls, logs and pauses."""
    if isinstance(statement, ast.Assign):
        return all(
            isinstance(each, ast.Name | ast.Tuple) or not local.isdisjoint(_names_in_chain(each)[-1:])
            for each in statement.targets
        )
    if not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Constant):
        return isinstance(statement, PLAIN_STATEMENTS)
    names = _names_in_chain(statement.value)
    return bool(names) and (names[-1] in local or not {*names}.isdisjoint(LOG_NAMES))


def _names_in_chain(value: ast.expr) -> list[str]:
    """Return the names in a chain such as ``self.log.info(...)``, the first name last."""
    names = []
    while isinstance(value, ast.Await | ast.Call | ast.Attribute | ast.Subscript):
        names += [value.attr] if isinstance(value, ast.Attribute) else []
        value = value.func if isinstance(value, ast.Call) else value.value
    return [*names, value.id] if isinstance(value, ast.Name) else []


def _function_at(file: str, line: int) -> Function | None:
    """Return the innermost function around a line; None in modules and templates."""
    functions = [
        each for each in _functions_in(file) if each.lineno <= line <= (each.end_lineno or each.lineno)
    ]
    return max(functions, key=lambda each: each.lineno, default=None)


@lru_cache(maxsize=64)
def _functions_in(file: str) -> tuple[Function, ...]:
    try:
        tree = (
            ast.parse(Path(file).read_text(encoding="utf-8"))
            if file.endswith(PYTHON_SUFFIX)
            else ast.Module([], [])
        )
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(each for each in ast.walk(tree) if isinstance(each, Function))
