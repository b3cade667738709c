"""A shop of twenty lines in each framework: what it answers to webhooks, as the page about errors says."""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.compat.packages import from_debian, python_with, version_in
from tests.documentation.frameworks import FRAMEWORKS
from tests.howto.languages import install_from_npm
from tests.support.commands import run_program
from tests.support.documentation import ROOT
from tests.support.tools import require

pytestmark = [pytest.mark.compat, pytest.mark.timeout(600)]
PROGRAMS: Final = Path(__file__).parent / "programs"
IN_PROCESS: Final = {
    "flask": "Flask", "django": "Django", "fastapi": "FastAPI", "starlette": "Starlette", "litestar": "Litestar",
    "quart": "Quart",
}  # fmt: skip
EXTRAS: Final = ("flask-wtf", "starlette-csrf", "httpx2")
NODE: Final = {
    # the name of a framework, its package and version, and the other packages that it needs
    "Express": ("express", "5", {}),
    "Fastify": ("fastify", "5", {}),
    "Hono": ("hono", "4", {"@hono/node-server": "2"}),
    "NestJS": (
        "@nestjs/core",
        "11",
        {"@nestjs/common": "11", "@nestjs/platform-express": "11", "reflect-metadata": "0.2", "rxjs": "7"},
    ),
}


def check(meeting: Sequence[str], name: str, version: str, record: Callable[..., None]) -> None:
    """Meet a shop; compare its answers with the row of its framework, and record them."""
    result = run_program(meeting, ROOT, 120, PYTHONPATH=f"{ROOT}:{ROOT / 'sandbox'}")
    assert result.returncode == 0, result.stderr[-3000:]
    answers = json.loads(result.stdout.splitlines()[-1])
    calls = ("missing slash", "extra slash", "protected")
    shown = ["runs" if answers[call] == "completed" else answers[call] for call in calls]
    shown = shown if shown[2] != "404" else shown[:2]  # most shops have no protected route
    others = "; ".join(f"{call}: {answer}" for call, answer in zip(calls, shown, strict=False))
    record("tool", ("framework", name, version, f"paid, refused; {others}"))
    assert (answers["paid"], answers["refused"]) == ("completed", "error"), answers
    assert answers["paid at a path without a slash"] == "completed", answers
    (row,) = (each for each in FRAMEWORKS if name in each.name)
    for cell, answer in zip(row[1:], shown, strict=False):
        assert cell.startswith(answer), f"{name}: {shown}"


def meet(python: str, *arguments: str) -> list[str]:
    """Return the command that meets a shop."""
    return [python, "-m", "tests.compat.frameworks.meet", *arguments]


@pytest.mark.parametrize("package", IN_PROCESS)
def test_a_shop_in_python(package: str, record_property: Callable[..., None]) -> None:
    """The shop, which is called in process, is told that an order is paid or refused."""
    python = python_with("frameworks", [*IN_PROCESS, *EXTRAS])
    check(meet(python, package), IN_PROCESS[package], version_in(python, package), record_property)


@pytest.mark.parametrize("name", NODE)
def test_a_shop_in_node(name: str, tmp_path: Path, record_property: Callable[..., None]) -> None:
    """The shop is told that an order is paid or refused."""
    require("nodejs", "npm")
    package, version, more = NODE[name]
    install_from_npm(tmp_path, {package: version, **more})
    for program in (f"{name.lower()}.mjs", "status.mjs"):
        (tmp_path / program).write_text((PROGRAMS / program).read_text())
    installed = json.loads((tmp_path / "node_modules" / package / "package.json").read_text())["version"]
    command = meet(sys.executable, name, "--", "node", str(tmp_path / f"{name.lower()}.mjs"))
    check(command, name, installed, record_property)


RUBY: Final = (
    "ruby-sinatra",
    "ruby-rack",
    "ruby-rack-protection",
    "ruby-tilt",
    "ruby-mustermann",
    "ruby-ruby2-keywords",
)
PHP: Final = ("php-slim", "php-pimple", "php-psr-container", "php-psr-http-message", "php-nikic-fast-route")


def test_a_shop_in_sinatra(record_property: Callable[..., None]) -> None:
    """The shop is told that an order is paid or refused."""
    require("ruby", "ruby-webrick")
    folder = from_debian(RUBY) / "usr"
    (version,) = (each.stem.rpartition("-")[2] for each in folder.rglob("sinatra-*.gemspec"))
    libraries = [f"-I{each}" for each in (folder / "lib/ruby/vendor_ruby", *folder.rglob("gems/*/lib"))]
    command = ("ruby", *libraries, str(PROGRAMS / "sinatra.rb"))
    check(meet(sys.executable, "Sinatra", "--", *command), "Sinatra", version, record_property)


def test_a_shop_in_slim(record_property: Callable[..., None]) -> None:
    """The shop is told that an order is paid or refused."""
    require("php-cli")
    packages = from_debian(PHP) / "usr" / "share" / "php"
    (version,) = re.findall("VERSION = '(.*)'", (packages / "Slim" / "App.php").read_text())
    php = ("php", "-d", f"include_path={packages}", "-S", "127.0.0.1:PORT", str(PROGRAMS / "slim.php"))
    check(meet(sys.executable, "Slim", "--", *php), "Slim", version, record_property)
