"""The commands in the README work unchanged."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.scenarios.catalogue import ready_names
from payment_sandbox.serving.realtime import wall_now
from payment_sandbox.serving.server import Server
from tests.support.servers import make_server

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
CURL_BLOCKS = [block for block in BLOCKS if "curl" in block]
PROJECT_LINK = re.compile(
    r"https://(?:github|raw\.githubusercontent)\.com/payment-sandbox/payment-sandbox/(?:blob/)?main/(.+)"
)
NUMBERS = {16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty"}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server as ``make run`` starts it, except for the port."""
    with make_server() as running:
        yield running


def paste(server: Server, *blocks: str) -> str:
    """Run blocks in one shell, in the checkout."""
    assert shutil.which("curl"), "the README's commands need curl: install your system's package of that name"
    script = "\n".join(blocks).replace("http://127.0.0.1:8080", server.url)
    result = subprocess.run(
        ["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout


def test_the_first_payment_works_as_pasted(server: Server) -> None:
    """The order is created, paid, and captured a week later."""
    printed = paste(server, *CURL_BLOCKS[:-1])
    paid, advanced, read, _ = (json.loads(response) for response in printed.splitlines())
    assert (paid["status"], read["amount_details"]["captured"]) == ("completed", 1295)
    assert advanced["events"][-1]["kind"] == "delayed-capture"
    client = SandboxClient(server.url, FIRST_API_KEY)
    assert abs(client.clock.now - wall_now()) < timedelta(minutes=1), "the commands must end at real time"


def test_the_scenario_works_as_pasted(server: Server) -> None:
    """The scenario file is accepted unchanged."""
    printed = json.loads(paste(server, CURL_BLOCKS[-1]))
    assert (printed["name"], len(printed["rules"])) == ("second-try-works", 2)


def test_its_own_server_starts(tmp_path: Path) -> None:
    """The serve command, run with this interpreter, becomes ready."""
    (command,) = (block for block in BLOCKS if ".venv/bin/python" in block)
    script = command.replace(".venv/bin/python", sys.executable).strip()
    with subprocess.Popen([*shlex.split(script)], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "API key sandbox-key" in running.stdout.readline()
        assert set(json.loads((tmp_path / "ready.json").read_text())) >= {"url", "pid", "version"}
        running.terminate()


def test_its_development_section_begins_with_make_run() -> None:
    """The Makefile has every target that the README mentions."""
    targets = re.findall(r"^([a-z]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    _, _, development = README.partition("## Development")
    assert re.findall(r"```sh\n(.*?)```", development, re.DOTALL) == ["make run\n", "make test\n"]
    assert set(re.findall(r"make ([a-z]+)", README)) <= set(targets)


def test_its_links_lead_somewhere() -> None:
    """Links are absolute for the package index; those within the project lead to existing files."""
    links = re.findall(r"\]\(([^)#]+)", README)
    assert [link for link in links if not link.startswith("https://")] == []
    paths = [match[1] for link in links if (match := PROJECT_LINK.match(link))]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert len(paths) > 10


def test_it_has_the_number_of_scenarios() -> None:
    """The README has the number of ready-made scenarios."""
    assert f"{NUMBERS[len(ready_names())]} ready-made scenarios" in README
