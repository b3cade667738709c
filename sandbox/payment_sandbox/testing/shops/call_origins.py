"""Tells the calls of a test from the calls of its shop, by the code that makes them."""

import os
from functools import cache
from inspect import CO_COROUTINE
from itertools import dropwhile, groupby
from operator import itemgetter
from pathlib import Path
from types import CodeType
from typing import Final

from payment_sandbox.projects.journal import SHOP, TEST
from payment_sandbox.testing.shops.tracebacks import LIBRARY_FOLDERS, SANDBOX_FOLDER, stack_frames

CLIENTS: Final = (
    "requests",
    "urllib3",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "anyio",
    "sniffio",
    "trio",
)
"""The packages between a caller and the sandbox; the standard library and our packages are others."""
RUNNERS: Final = ("_pytest", "unittest")
CLIENT, SANDBOX, LIBRARY, USER, RUNNER = "client", "sandbox", "library", "user", "runner"
COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
PACKAGES_FOLDER: Final = Path(SANDBOX_FOLDER).parent
SHARED_SETUP: Final = "conftest.py"


def current_caller() -> str:
    """Return whether a test or its shop makes the current call.

    A call is the test's if a runner calls the function that makes it, so that no code of the shop, no
    handler and no job is in between; functions in ``conftest.py`` belong to the test.
    """
    own = [code for code in _callers() if code.co_name not in COMPREHENSIONS]
    inner = own[:-1]
    if not own or any(not code.co_filename.endswith(SHARED_SETUP) for code in inner):
        return SHOP
    # A coroutine may be a task of the shop on the loop of the test.
    is_task = bool(own[-1].co_flags & CO_COROUTINE) and not own[-1].co_name.startswith("test")
    return SHOP if is_task and not own[-1].co_filename.endswith(SHARED_SETUP) else TEST


def _callers() -> list[CodeType]:
    """Return the functions that make the call, innermost first; none if no runner called them directly."""
    kinds = ((_kind_of(code.co_filename), code) for code, _ in stack_frames())
    calling = dropwhile(lambda each: each[0] in (CLIENT, SANDBOX), kinds)
    runs = groupby(calling, key=itemgetter(0))
    innermost, direct = next(runs, (LIBRARY, ()))
    if innermost != USER:
        return []
    callers = [code for _, code in direct]
    outer = next((kind for kind, _ in runs if kind in (RUNNER, USER, SANDBOX)), USER)  # or in a handler
    return callers if outer == RUNNER else []


@cache
def _kind_of(file: str) -> str:
    if file.startswith("<"):
        return LIBRARY
    if Path(file).is_relative_to(SANDBOX_FOLDER) or Path(file).is_relative_to(
        PACKAGES_FOLDER / "pytest_payment_sandbox"
    ):
        return SANDBOX
    folder = max((each for each in LIBRARY_FOLDERS if file.startswith(each)), key=len, default=None)
    if folder is None:
        return USER
    package = Path(file).relative_to(folder).parts[0]
    if package in RUNNERS:
        return RUNNER
    return CLIENT if package in CLIENTS or not folder.endswith(f"-packages{os.sep}") else LIBRARY
