"""The packages for Node and PHP: starting a sandbox, errors without one, test runners and types."""

import json
import shutil
import subprocess
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final

import pytest

from tests.howto.languages import copied, install_from_npm
from tests.support.documentation import BIN, run_command
from tests.support.servers import make_server
from tests.support.tools import require

PROGRAMS: Final = Path(__file__).parent / "programs"
CREATE: Final = {
    # creates a project, and prints its address or the error
    "node": (
        "node",
        "--input-type=module",
        "-e",
        'import { newProject } from "payment-sandbox"; '
        "await newProject().then((project) => console.log(`created at ${project.url}`), (error) => console.log(error.message));",
    ),
    "php": (
        "php",
        "-r",
        'require "vendor/autoload.php"; try { echo "created at " . PaymentSandbox\\Project::create()->url, PHP_EOL; } '
        "catch (Throwable $error) { echo $error->getMessage(), PHP_EOL; }",
    ),
}
SYSTEM_PACKAGES: Final = {"node": ("nodejs",), "php": ("php-cli", "php-curl", "composer")}
PACKAGES: Final = {"node": "node_modules/payment-sandbox", "php": "vendor/payment-sandbox/payment-sandbox"}
INSTALL: Final = 'Run "make run" once in the clone of the package, or set SANDBOX_COMMAND to the command'
EXEC: Final = f'exec {BIN}/payment-sandbox "$@"\n'
pytestmark = pytest.mark.prove
both_languages = pytest.mark.parametrize("language", CREATE)
RunProgram = Callable[..., str]


@pytest.fixture
def run_program(language: str, tmp_path: Path) -> RunProgram:
    """Return a function that runs a language's program with only these programs on the path."""
    require(*SYSTEM_PACKAGES[language])
    folder, programs = copied(language, tmp_path), tmp_path / "programs"
    package = folder / PACKAGES[language]
    if package.is_symlink():  # to the checkout, which has an environment
        checkout = package.resolve()
        package.unlink()
        shutil.copytree(checkout, package)
    programs.mkdir()
    for name in ("sh", "stat", "sed", "echo"):
        (programs / name).symlink_to(shutil.which(name) or "")
    command = list(CREATE[language])
    command[0] = shutil.which(command[0]) or ""

    def run(others: dict[str, str] | None = None, **variables: str) -> str:
        for name, text in (others or {}).items():
            (programs / name).parent.mkdir(parents=True, exist_ok=True)
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        result = run_command(command, folder, 60, PATH=str(programs), **variables)
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("\n") == 1, "one line"
        return result.stdout

    return run


@both_languages
def test_a_suite_without_a_sandbox_says_what_to_install_or_set(run_program: RunProgram) -> None:
    """The error names the missing command and its installation in one line."""
    found_nothing = run_program()
    assert found_nothing.startswith("no payment sandbox: there is no payment-sandbox on the PATH, and no /")
    assert f"/.venv/bin/payment-sandbox. {INSTALL}" in found_nothing
    missing = run_program(SANDBOX_COMMAND="nonsense serve")
    assert missing.startswith(
        f'the sandbox did not start with "nonsense serve": there is no program nonsense. {INSTALL}'
    )
    wrong = run_program(SANDBOX_COMMAND=f"{BIN}/python -m nonsense")
    assert "it exited with code 1: " in wrong
    assert f"No module named nonsense. {INSTALL}" in wrong


@both_languages
def test_a_server_that_is_no_sandbox_is_named(run_program: RunProgram) -> None:
    """The error names the address, and the response of another program."""
    assert "no payment sandbox at http://127.0.0.1:9: " in run_program(SANDBOX_URL="http://127.0.0.1:9/")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        Thread(target=other.serve_forever).start()
        url = f"http://127.0.0.1:{other.server_port}"
        message = run_program(SANDBOX_URL=f"{url}/")
        other.shutdown()
    assert message.startswith(
        f"no payment sandbox at {url}: another program answered 501; set SANDBOX_URL to the address"
    )
    with make_server() as server:
        assert run_program(SANDBOX_URL=f"{server.url}/") == f"created at {server.url}\n"
        message = run_program(SANDBOX_URL=f"{server.url}/v1")
    assert message.startswith(
        f"no payment sandbox at {server.url}/v1: 404 NotFound: this path does not exist; "
    )
    with make_server(control_token="a secret") as server:
        assert "401 Unauthorized: this call needs the server's control token" in run_program(
            SANDBOX_URL=server.url
        )
        wrong = run_program(SANDBOX_URL=server.url, SANDBOX_CONTROL_TOKEN="wrong")
        assert "401 Unauthorized: the control token is wrong: " in wrong
        right = run_program(SANDBOX_URL=server.url, SANDBOX_CONTROL_TOKEN="a secret")
        assert right == f"created at {server.url}\n"


@both_languages
def test_the_first_available_command_starts_the_sandbox(
    run_program: RunProgram, language: str, tmp_path: Path
) -> None:
    """SANDBOX_COMMAND, payment-sandbox and the environment of the package's clone are tried in this order."""
    broken, works = "#!/bin/sh\nexit 9\n", f"#!/bin/sh\n{EXEC}"
    of_clone = str((tmp_path / language / PACKAGES[language]).parents[1] / ".venv/bin/payment-sandbox")
    assert run_program({of_clone: works}).startswith("created at http://127.0.0.1:")
    on_path = {of_clone: broken, "payment-sandbox": works}
    assert run_program(on_path).startswith("created at http://127.0.0.1:")
    spaced = {"payment-sandbox": broken, "with a space": works}
    assert run_program(spaced, SANDBOX_COMMAND="'with a space'").startswith("created at http://")


RUNNERS: Final = {"vitest": "4.1.12", "jest": "30.5.2"}
TYPES: Final = {"typescript": "5.9.3", "@types/node": "20"}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program of the project."""
    program = ["npx", "--no-install", *command.split()]
    return run_command(program, folder, 120, CI="true", NO_COLOR="1")


def test_vitest_and_jest_run_the_tests_and_print_the_timeline_of_a_failure(tmp_path: Path) -> None:
    """All workers share a server, with ES modules, CommonJS and fake timers."""
    require("nodejs", "npm")
    folder = copied("node", tmp_path)
    install_from_npm(folder, RUNNERS)
    suite = (folder / "shop.test.mjs").read_text().replace('"node:test"', '"vitest"')
    (folder / "shop.test.mjs").write_text(suite)
    in_commonjs = (PROGRAMS / "shop.test.js").read_text()
    (folder / "shop.test.js").write_text(in_commonjs)
    result = run("vitest run shop.test.mjs", folder)
    assert "Tests  3 passed" in result.stdout, result.stdout + result.stderr
    result = run("jest --testMatch **/shop.test.js", folder)
    assert "Tests:       1 passed" in result.stderr, result.stdout + result.stderr
    (folder / "shop.test.mjs").write_text(suite.replace('"expired"', '"paid"'))
    (folder / "shop.test.js").write_text(in_commonjs.replace('["completed", ', '["paid", '))
    for command in ("vitest run shop.test.mjs", "jest --testMatch **/shop.test.js"):
        result = run(command, folder)
        assert result.returncode == 1
        output = result.stdout + result.stderr
        assert "--- payment sandbox ---" in output
        assert " POST /v1/orders/ -> 201" in output


STRICT: Final = {
    "strict": True, "noUncheckedIndexedAccess": True, "exactOptionalPropertyTypes": True, "target": "es2022",
    "module": "nodenext", "types": ["node"], "noEmit": True,
}  # fmt: skip


def test_typescript_knows_the_package_in_strict_mode(tmp_path: Path) -> None:
    """The types work in ES modules and in CommonJS, and refuse unknown actions."""
    require("nodejs", "npm")
    folder = copied("node", tmp_path)
    install_from_npm(folder, TYPES)
    for name in ("typed.mts", "typed.cts"):
        shutil.copy(PROGRAMS / name, folder)
    (folder / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": STRICT, "include": ["*.mts", "*.cts"]})
    )
    result = run("tsc -p .", folder)
    assert result.returncode == 0, result.stdout


def test_both_kinds_of_handlers_get_webhooks_and_report_errors(tmp_path: Path) -> None:
    """Handlers also get the webhooks of orders with another shop's address, which is not called."""
    require("nodejs")
    folder = copied("node", tmp_path)
    shutil.copy(PROGRAMS / "handlers.test.mjs", folder)
    result = run_command(["node", "--test", "handlers.test.mjs"], folder, 60)
    assert "# pass 1" in result.stdout, result.stdout + result.stderr


def test_a_handler_in_php_may_call_and_throw(tmp_path: Path) -> None:
    """A handler's exception is its response, and a refusal of the sandbox is an exception."""
    require("php-cli", "php-curl", "composer")
    folder = copied("php", tmp_path)
    shutil.copy(PROGRAMS / "handler.php", folder)
    result = run_command(["php", "handler.php"], folder, 60)
    credited, seen, status, kind, report, statuses = json.loads(result.stdout)
    assert (credited, status, kind) == ("completed", 409, "ActionNotPossible")
    assert seen[:2] == ["completed", "completed"]
    assert "500 · LogicException: no stock" in report
    assert "500 · the webhook handler must return an HTTP status or null, not string" in report
    assert "Project.php" not in report
    assert statuses == [503]
