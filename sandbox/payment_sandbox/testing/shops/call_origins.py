"""Tells the calls of a test from the calls of its shop, by the code that makes them."""

import os
import re
from functools import cache
from itertools import dropwhile, takewhile
from pathlib import Path
from types import CodeType
from typing import Final

from payment_sandbox.projects.journal import SHOP, TEST
from payment_sandbox.testing.shops.receiving import SERVED_FRAMEWORKS
from payment_sandbox.testing.shops.shop_requests import is_shop_answering
from payment_sandbox.testing.shops.tracebacks import (
    CURRENT_HANDLER,
    LIBRARY_FOLDERS,
    SANDBOX_FOLDER,
    is_shop_thread,
    stack_frames,
)

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
CLIENT, SANDBOX, LIBRARY, SHOP_CODE, TEST_CODE, RUNNER = (
    "client",
    "sandbox",
    "library",
    "shop",
    "test",
    "runner",
)
PACKAGES_FOLDER: Final = Path(SANDBOX_FOLDER).parent
TEST_FILE: Final = re.compile(r"test_.*\.py|.*_test\.py|tests\.py|conftest\.py")
TEST_FOLDERS: Final = frozenset(("test", "tests"))
SERVER_MODULES: Final = (
    os.path.join("http", "server.py"),
    "socketserver.py",
    os.path.join("asyncio", "streams.py"),
)
APPLICATION_PARAMETERS: Final = ({"environ"}, {"scope", "receive", "send"})


def current_caller() -> str:
    """Return whether a test or its shop makes the current call.

    A call is the test's if only code of the tests makes it: no module of the shop, and no application, job or
    function that runs for the sandbox or for a server.
    """
    if CURRENT_HANDLER.get() is not None or is_shop_answering() or is_shop_thread():
        return SHOP
    frames = [(_kind_of(code.co_filename), code) for code, _ in stack_frames()]
    calling = list(dropwhile(lambda each: each[0] in (CLIENT, SANDBOX), frames))
    until_runner = list(takewhile(lambda each: each[0] != RUNNER, calling))
    is_tests = bool(until_runner) and until_runner[0][0] == TEST_CODE
    return SHOP if not is_tests or any(_is_shop(*each) for each in until_runner) else TEST


def _is_shop(kind: str, code: CodeType) -> bool:
    """Whether a frame around a call shows that the shop makes it: its module, an application, or a server."""
    if kind in (SHOP_CODE, SANDBOX):
        return True
    parameters = {*code.co_varnames[: code.co_argcount]}
    return code.co_filename.endswith(SERVER_MODULES) or any(
        names <= parameters for names in APPLICATION_PARAMETERS
    )


@cache
def _kind_of(file: str) -> str:
    if file.startswith("<"):
        return CLIENT  # such as a generated method
    if Path(file).is_relative_to(SANDBOX_FOLDER) or Path(file).is_relative_to(
        PACKAGES_FOLDER / "pytest_payment_sandbox"
    ):
        return SANDBOX
    folder = max((each for each in LIBRARY_FOLDERS if file.startswith(each)), key=len, default=None)
    if folder is None:
        return TEST_CODE if is_test_code(Path(file)) else SHOP_CODE
    package = Path(file).relative_to(folder).parts[0]
    if package in RUNNERS:
        return RUNNER
    if package in SERVED_FRAMEWORKS:
        return SHOP_CODE
    return CLIENT if package in CLIENTS or not folder.endswith(f"-packages{os.sep}") else LIBRARY


def is_test_code(file: Path) -> bool:
    """Return whether a file is a test file, a ``conftest.py``, or in a folder of tests."""
    inner = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    return TEST_FILE.fullmatch(file.name) is not None or not TEST_FOLDERS.isdisjoint(inner.parts[:-1])
