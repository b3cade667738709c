"""Each client that a generator writes from the API description creates, pays, reads and refunds an order."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZipFile

import pytest

from tests.compat.packages import python_with
from tests.howto.languages import fetched, install_from_npm
from tests.support.commands import run_program
from tests.support.environments import cached
from tests.support.projects import openapi_description
from tests.support.servers import make_server
from tests.support.tools import require

GENERATOR: Final = "openapi-generator-cli==7.26.0"
GENERATOR_JAR: Final = "openapi_generator_cli/openapi-generator.jar"
PROGRAMS: Final = Path(__file__).parent / "programs"
FLOW: Final = """created new credit-card
paid completed, capturable: false
a week later: delayed-capture
refunded 500
refused 409 RefundExceedsCaptured
"""
QUICK: Final = "-XX:TieredStopAtLevel=1"  # Java starts with less processor time
PYTHON_GENERATORS: Final = ("urllib3", "python-dateutil", "pydantic")
NODE_GENERATORS: Final = {
    "openapi-typescript": "7.13.0",
    "openapi-fetch": "0.17.0",
    "typescript": "5.9.3",
    "@types/node": "20",
}
COMPILER: Final = {
    "compilerOptions": {
        "strict": True, "noUncheckedIndexedAccess": True, "target": "es2022", "module": "esnext",
        "moduleResolution": "bundler", "types": ["node"], "outDir": "built",
    },
    "include": ["payment.ts", "schema.d.ts"],
}  # fmt: skip


def openapi_generator() -> Path:
    """Return the archive of openapi-generator, which is fetched once on a machine."""

    def fetch(target: Path) -> None:
        fetched([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", GENERATOR], target)
        (wheel,) = target.glob("*.whl")
        ZipFile(wheel).extract(GENERATOR_JAR, target)
        wheel.unlink()

    return cached("openapi-generator", [GENERATOR], fetch) / GENERATOR_JAR


def succeed(folder: Path, *program: str) -> str:
    """Run a program that must succeed; return what it prints."""
    result = run_program(program, folder, 280, PYTHONPATH=str(folder))
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def generate(folder: Path, language: str, *options: str) -> None:
    """Generate a client with openapi-generator."""
    require("default-jdk-headless")
    command = f"java {QUICK} -jar {openapi_generator()} generate -i openapi.json -o client -g {language}"
    succeed(folder, *command.split(), *options)


def in_python(folder: Path) -> Sequence[str]:
    """Generate a client that validates every request and response with pydantic."""
    python = python_with("generators", PYTHON_GENERATORS)
    generate(folder, "python")
    shutil.move(folder / "client" / "openapi_client", folder)
    return (python, "payment.py")


def in_php(folder: Path) -> Sequence[str]:
    """Generate a client with models of every request and response."""
    require("php-cli", "php-guzzlehttp-guzzle")
    generate(folder, "php", "--invoker-package", "Sandbox")
    return ("php", "-d", "error_reporting=8191", "payment.php")


def in_typescript(folder: Path) -> Sequence[str]:
    """Generate types for openapi-fetch, and compile in strict mode."""
    require("nodejs", "npm")
    (folder / "package.json").write_text(json.dumps({"type": "module", "private": True}))
    (folder / "tsconfig.json").write_text(json.dumps(COMPILER))
    install_from_npm(folder, NODE_GENERATORS)
    succeed(folder, *["npx", "--no-install", "openapi-typescript", "openapi.json", "-o", "schema.d.ts"])
    succeed(folder, "npx", "--no-install", "tsc")
    return ("node", "built/payment.js")


class Client(NamedTuple):
    """A generated client: its generator's name and version, and how it is made."""

    name: str
    version: str
    make: Callable[[Path], Sequence[str]]


OPENAPI_GENERATOR: Final = GENERATOR.partition("==")[2]
BY_HAND: Final = Client("openapi-generator, python", OPENAPI_GENERATOR, in_python)
IN_CI: Final = (
    Client("openapi-generator, php", OPENAPI_GENERATOR, in_php),
    Client("openapi-typescript, openapi-fetch", NODE_GENERATORS["openapi-typescript"], in_typescript),
)


@pytest.mark.compat
@pytest.mark.parametrize(
    "client",
    [BY_HAND, *(pytest.param(client, marks=pytest.mark.prove) for client in IN_CI)],
    ids=lambda client: client.name,
)
def test_a_client_drives_a_payment(
    client: Client, tmp_path: Path, record_property: Callable[..., None]
) -> None:
    """The program with the client prints what it did."""
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "openapi.json").write_text(openapi_description())
    command = client.make(tmp_path)
    record_property("tool", ("generated", client.name, client.version, "created, paid, read, refunded"))
    with make_server() as server:
        assert succeed(tmp_path, *command, server.url) == FLOW
