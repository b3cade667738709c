"""A client that openapi-generator writes in Python or Go creates, pays, reads and refunds an order."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from payment_sandbox.serving.server import openapi_description
from tests.howto.test_languages import FLOW
from tests.support.commands import run_program
from tests.support.languages import PROJECTS, fetched, openapi_generator
from tests.support.servers import make_server

pytestmark = pytest.mark.compat


@pytest.fixture
def served() -> Iterator[str]:
    """The address of a server."""
    with make_server() as server:
        yield server.url


def succeed(folder: Path, *program: str) -> str:
    """Run a program that must succeed; return what it prints."""
    result = run_program(program, folder, 280, GOFLAGS="-mod=mod")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def generate(folder: Path, language: str) -> None:
    """Generate a client."""
    if shutil.which("java") is None:
        pytest.skip("java is missing")
    (folder / "openapi.json").write_text(openapi_description())
    options = ("--additional-properties=packageName=sandbox,withGoMod=true",) if language == "go" else ()
    command = ("java", "-jar", str(openapi_generator()), "generate", "-i", "openapi.json", "-g", language)
    succeed(folder, *command, "-o", "client", *options)


def test_a_python_client_drives_a_payment(served: str, tmp_path: Path) -> None:
    """The client validates every request and response with pydantic."""
    generate(tmp_path, "python")
    fetched([sys.executable, "-m", "venv", "environment"], tmp_path)
    python = str(tmp_path / "environment" / "bin" / "python")
    fetched([python, "-m", "pip", "install", "--quiet", "./client"], tmp_path)
    assert succeed(tmp_path, python, str(PROJECTS / "clients" / "payment.py"), served) == FLOW


def test_a_go_client_drives_a_payment(served: str, tmp_path: Path) -> None:
    """The client compiles, and its integers hold every value."""
    if shutil.which("go") is None:
        pytest.skip("go is missing")
    generate(tmp_path, "go")
    program = tmp_path / "client" / "payment"
    program.mkdir()
    shutil.copy(PROJECTS / "clients" / "payment.go", program / "main.go")
    assert succeed(tmp_path / "client", "go", "run", "./payment", served) == FLOW
