"""Each test tool runs three payment tests: of a paid, a refused and an expired order."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.compat.packages import python_with, version_in
from tests.support.commands import run_program
from tests.support.documentation import ROOT

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
PROGRAMS: Final = Path(__file__).parent / "programs"
PACKAGES: Final = (
    "pytest-bdd", "pytest-asyncio", "anyio", "trio", "pytest-trio", "pytest-repeat", "pytest-run-parallel",
    "hypothesis", "pytest-socket", "pytest-httpx", "pytest-recording", "behave", "twisted",
    "nose2", "httpx", "aiohttp",
)  # fmt: skip
PYTEST: Final = "pytest -q -p pytest_payment_sandbox.plugin -p no:cacheprovider"
THREE: Final = "3 passed"


class Tool(NamedTuple):
    """A tool: its package, how the suite is run, what is printed if it passes, and variables."""

    name: str
    package: str
    command: str
    printed: str = THREE
    variables: tuple[str, ...] = ()


def plugin(name: str, options: str, printed: str = THREE, *variables: str, label: str = "") -> Tool:
    """Return a plugin of pytest, whose module is loaded by name."""
    return Tool(f"{name}{label}", name, f"{PYTEST} {options}", printed, variables)


ASYNCIO: Final = "-p pytest_asyncio.plugin -o asyncio_default_fixture_loop_scope=function --asyncio-mode"
TOOLS: Final = (
    plugin("pytest-bdd", "-p pytest_bdd.plugin suite_bdd.py"),
    plugin(
        "pytest-asyncio", f"{ASYNCIO}=auto suite_awaited.py", THREE, "MARK=filterwarnings", label=", auto"
    ),
    plugin("pytest-asyncio", f"{ASYNCIO}=strict suite_awaited.py", THREE, "MARK=asyncio", label=", strict"),
    plugin("anyio", "-p anyio.pytest_plugin suite_awaited.py", "6 passed", "MARK=anyio"),
    plugin("pytest-trio", "-p pytest_trio.plugin suite_awaited.py", THREE, "MARK=trio"),
    plugin("pytest-repeat", "-p pytest_repeat --count 3 suite_plain.py", "9 passed"),
    plugin("pytest-run-parallel", "-p pytest_run_parallel.plugin --parallel-threads 2 suite_threads.py"),
    plugin("hypothesis", "-p _hypothesis_pytestplugin suite_examples.py"),
    plugin("pytest-socket", "-p pytest_socket --disable-socket suite_plain.py"),
    plugin("pytest-httpx", f"-p pytest_httpx {ASYNCIO}=strict suite_httpx_mock.py"),
    plugin("pytest-recording", "-p pytest_recording.plugin --block-network suite_plain.py"),
    plugin("pytest", "suite_subtests.py", "1 passed", label=", subtests"),
    Tool("behave", "behave", "behave payments.feature", "3 scenarios passed, 0 failed"),
    Tool("trial", "twisted", "twisted.trial suite_unit", "successes=3", ("CASE=twisted.trial.unittest",)),
    Tool("nose2", "nose2", "nose2 suite_unit", "Ran 3 tests", ("CASE=unittest",)),
)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_runs_payment_tests(tool: Tool, tmp_path: Path, record_property: Callable[..., None]) -> None:
    """The three tests pass."""
    python = python_with("test-tools", PACKAGES)
    version = version_in(python, tool.package)
    record_property("tool", ("test tool", tool.name, version, tool.printed))
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    environment = {
        **dict(variable.split("=", 1) for variable in tool.variables),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PAYMENT_SANDBOX_REVIEW": "off",
        "PYTHONPATH": f"{ROOT / 'sandbox'}:.",
    }
    result = run_program([python, "-W", "error", "-m", *tool.command.split()], tmp_path, 200, **environment)
    printed = result.stdout[-3000:] + result.stderr[-3000:]
    assert result.returncode == 0, printed
    assert tool.printed in printed, printed
