"""Each client that a generator writes from the API description creates, pays, reads and refunds an order."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZipFile

import pytest

from tests.compat.packages import from_debian, python_with, version_in
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
PYTHON_GENERATORS: Final = (
    "openapi-python-client",
    "datamodel-code-generator",
    "httpx",
    "python-dateutil",
    "pydantic",
)
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
    result = run_program(program, folder, 280, GOFLAGS="-mod=mod", PYTHONPATH=str(folder))
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


def in_go(folder: Path) -> Sequence[str]:
    """Generate and compile a client whose integers hold every value."""
    if shutil.which("go") is None:
        pytest.skip("go is missing")
    generate(folder, "go", "--additional-properties=packageName=sandbox,withGoMod=true")
    (folder / "client" / "payment").mkdir()
    shutil.copy(folder / "payment.go", folder / "client" / "payment" / "main.go")
    succeed(folder / "client", "go", "build", "-o", "../payment", "./payment")
    return ("./payment",)


def in_java(folder: Path) -> Sequence[str]:
    """Generate and compile a client with the HTTP client of the JDK; Jackson is in the generator's archive."""
    properties = "openApiNullable=false,containerDefaultToNull=true"
    generate(folder, "java", "--library", "native", f"--additional-properties={properties}")
    (annotations,) = from_debian(["libgeronimo-annotation-1.3-spec-java"]).rglob("*spec.jar")
    classes = f"{openapi_generator()}:{annotations}:built"
    sources = map(str, (folder / "client" / "src" / "main").rglob("*.java"))
    succeed(folder, "javac", f"-J{QUICK}", "-cp", classes, "-d", "built", "Payment.java", *sources)
    return ("java", QUICK, "-cp", classes, "Payment")


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


def with_python_client(folder: Path) -> Sequence[str]:
    """Generate a client with openapi-python-client."""
    python = python_with("generators", PYTHON_GENERATORS)
    options = ("--path", "openapi.json", "--meta", "none", "--output-path", "sandbox")
    succeed(folder, python, "-m", "openapi_python_client", "generate", *options)
    return (python, "with_python_client.py")


def with_models(folder: Path) -> Sequence[str]:
    """Generate models of pydantic with datamodel-code-generator."""
    python = python_with("generators", PYTHON_GENERATORS)
    options = "--input openapi.json --input-file-type openapi --output-model-type pydantic_v2.BaseModel"
    succeed(folder, python, "-m", "datamodel_code_generator", *options.split(), "--output", "models.py")
    return (python, "with_models.py")


class Client(NamedTuple):
    """A generated client: its generator's name and version, or package in Python, and how it is made."""

    name: str
    version: str
    make: Callable[[Path], Sequence[str]]


OPENAPI_GENERATOR: Final = GENERATOR.partition("==")[2]
CLIENTS: Final = (
    Client("openapi-generator, python", OPENAPI_GENERATOR, in_python),
    Client("openapi-generator, go", OPENAPI_GENERATOR, in_go),
    Client("openapi-generator, java", OPENAPI_GENERATOR, in_java),
    Client("openapi-python-client", "", with_python_client),
    Client("datamodel-code-generator", "", with_models),
)
IN_CI: Final = (
    Client("openapi-generator, php", OPENAPI_GENERATOR, in_php),
    Client("openapi-typescript, openapi-fetch", NODE_GENERATORS["openapi-typescript"], in_typescript),
)


@pytest.mark.compat
@pytest.mark.parametrize(
    "client",
    [*CLIENTS, *(pytest.param(client, marks=pytest.mark.prove) for client in IN_CI)],
    ids=lambda client: client.name,
)
def test_a_client_drives_a_payment(
    client: Client, tmp_path: Path, record_property: Callable[..., None]
) -> None:
    """The program with the client prints what it did."""
    shutil.copytree(PROGRAMS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "openapi.json").write_text(openapi_description())
    command = client.make(tmp_path)
    version = client.version or version_in(command[0], client.name)
    record_property("tool", ("generated", client.name, version, "created, paid, read, refunded"))
    with make_server() as server:
        assert succeed(tmp_path, *command, server.url) == FLOW


@pytest.mark.compat
def test_a_ruby_client_has_no_wrong_syntax(tmp_path: Path, record_property: Callable[..., None]) -> None:
    """Ruby compiles every file; the libraries of the client are not installed."""
    require("ruby")
    record_property("tool", ("generated", "openapi-generator, ruby", OPENAPI_GENERATOR, "syntax"))
    (tmp_path / "openapi.json").write_text(openapi_description())
    generate(tmp_path, "ruby")
    files = map(str, (tmp_path / "client" / "lib").rglob("*.rb"))
    succeed(
        tmp_path, "ruby", "-e", "ARGV.each { |file| RubyVM::InstructionSequence.compile_file(file) }", *files
    )
