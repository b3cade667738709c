"""The recipes for CI: their steps run, and their variables are those of ``serve``."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from payment_sandbox.cli.serve import serve
from payment_sandbox.web.docs.library import read_source
from tests.support.blocks import Block, blocks
from tests.support.commands import command
from tests.support.documentation import ROOT, environment, of, run_command
from tests.support.languages import fetched, require
from tests.support.ports import free_port

PAGE = list(blocks(read_source("ci")))
INSTALLATION = re.compile(
    r"pip install -r requirements\.txt pytest-payment-sandbox( pytest-xdist)?"
    r"|pipx install 'payment-sandbox\[server\]'( && pipx inject payment-sandbox pytest-payment-sandbox)?"
)
SUITE = """
const { SANDBOX_URL: url, SANDBOX_CONTROL_TOKEN: token } = process.env;
const made = await fetch(`${url}/control/projects/`, { method: "POST", headers: { Authorization: `Bearer ${token}` } });
if (made.status !== 201) throw new Error(await made.text());
const project = await made.json();
const order = await fetch(`${url}/v1/orders/`, {
  method: "POST",
  headers: { Authorization: `Basic ${btoa(`${project.api_key}:`)}`, "Content-Type": "application/json" },
  body: JSON.stringify({ currency: "EUR", amount: 1295, transactions: [{ payment_method: "credit-card" }] }),
});
if (order.status !== 201) throw new Error(await order.text());
"""


def recipes() -> list[Any]:
    """The jobs on the page."""
    found = [block for block in of("yaml", "ci") if not block.values[0].file]
    return [
        found[0],
        *(pytest.param(*more.values, id=more.id, marks=pytest.mark.prove) for more in found[1:]),
    ]


def test_the_page_shows_the_compose_file() -> None:
    """The one that is tested."""
    (shown,) = (block for block in PAGE if block.file == "compose.yaml")
    assert shown.text == (ROOT / "compose.yaml").read_text()


@pytest.mark.parametrize("block", recipes())
def test_the_steps_of_a_recipe_run(block: Block, tmp_path: Path) -> None:
    """Except for the installation: this installation is used, on a port of its own."""
    data = YAML(typ="safe", pure=True).load(block.text)
    (job,) = data["jobs"].values() if "jobs" in data else data.values()
    steps = [step["run"] for step in job["steps"] if "run" in step] if "steps" in job else job["script"]
    if "npm test" in steps and shutil.which("npm") is None:
        pytest.skip("npm is not installed; .ci/run installs it")
    prepare(tmp_path)
    port = str(free_port())
    variables = {**job.get("env", {}), **job.get("variables", {})}
    with service(job, port):
        for step in steps:
            if step.startswith(("pip install ", "pipx install ")):
                assert INSTALLATION.fullmatch(step), step
                continue
            ran = subprocess.run(
                ["bash", "-euc", with_port(step, port)],
                cwd=tmp_path,
                env=environment(**{name: with_port(value, port) for name, value in variables.items()}),
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            output = ran.stdout[-3000:] + ran.stderr[-1000:]
            if "-budget" in step:  # the shops of the pages have no time limits
                assert ran.returncode in (0, 1), output
                assert " variations" in output, output
            else:
                assert ran.returncode == 0, output
    for step in job.get("steps", ()):
        if "upload-artifact" in step.get("uses", ""):
            assert (tmp_path / step["with"]["path"]).exists()
    if (tmp_path / "ready.json").exists():
        os.kill(json.loads((tmp_path / "ready.json").read_text())["pid"], 15)


STARTS = [block.text for block in PAGE if "until test -s ready.json" in block.text]


def test_all_recipes_wait_for_the_server_in_the_same_manner() -> None:
    """Until it is ready or has ended."""
    waits = {line.strip() for text in STARTS for line in text.splitlines() if "until test" in line}
    assert (len(STARTS), len(waits)) == (2, 1)


@pytest.mark.parametrize("number", range(2))
def test_a_recipe_with_a_wrong_option_ends_at_once(number: int, tmp_path: Path) -> None:
    """With the message of the command, and without a second one about the end of its process."""
    text = STARTS[number]
    if "jobs:" in text:
        job = YAML(typ="safe", pure=True).load(text)["jobs"]["test"]
        (text,) = (step["run"] for step in job["steps"] if "ready.json" in step.get("run", ""))
    ran = subprocess.run(
        ["bash", "-c", text.replace("serve", "serve --colour")],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )
    assert ran.returncode == 1
    assert "No such option" in ran.stdout
    assert "process" not in ran.stdout + ran.stderr


def prepare(folder: Path) -> None:
    """A repository with tests in Python and in another language."""
    (first, *_) = (block for block in blocks(read_source("pytest")) if block.language == "python")
    (folder / "test_shop.py").write_text(first.text)
    (folder / "suite.mjs").write_text(SUITE)
    (folder / "package.json").write_text(json.dumps({"scripts": {"test": "node suite.mjs"}}))


def with_port(text: str, port: str) -> str:
    """The text with another port than 8080, which this machine may use; names stand for this machine."""
    here = text.replace("localhost:8080", f"127.0.0.1:{port}").replace("sandbox:8080", f"127.0.0.1:{port}")
    here = here.replace("127.0.0.1:8080", f"127.0.0.1:{port}").replace("python3 ", f"{sys.executable} ")
    return here.replace("sandbox serve", f"sandbox serve --port {port}").replace("budget 10m", "budget 5s")


@contextmanager
def service(job: Any, port: str) -> Iterator[None]:
    """The service container of a job, as a process; it has to be healthy before the steps begin."""
    services = job.get("services", {})
    listed = services.values() if isinstance(services, dict) else services
    given = [found.get("env") or found["variables"] for found in listed]
    if not given:
        yield
        return
    known = {parameter.envvar for parameter in serve.params}
    assert given[0].keys() <= known
    options = ["serve", "--port", port, "--host", "0.0.0.0"]
    with subprocess.Popen(command(*options), env=environment(**given[0]), stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it has ended"
            health = command("health", f"http://127.0.0.1:{port}")
            subprocess.run(health, capture_output=True, check=True, timeout=20)
            yield
        finally:
            process.kill()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv, pipx and testcontainers, in an environment of their own."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    pip = [
        str(folder / "bin" / "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "uv",
        "pipx",
        "testcontainers",
    ]
    ran = subprocess.run(pip, capture_output=True, text=True, timeout=280, check=False)
    if ran.returncode != 0 and "CI" not in os.environ:
        pytest.skip("uv, pipx and testcontainers cannot be fetched")
    assert ran.returncode == 0, ran.stderr[-2000:]
    return folder / "bin"


@pytest.mark.prove
@pytest.mark.parametrize("start", ["uvx", "pipx run"])
def test_it_runs_without_an_installation(start: str, tools: Path, wheels: list[Path], tmp_path: Path) -> None:
    """The line of the page; our wheels come from a folder instead of an index."""
    (line,) = (
        part
        for row in read_source("ci").splitlines()
        for part in row.split("`")
        if part.startswith(f"{start} ")
    )
    places = {
        "UV_FIND_LINKS": str(wheels[0].parent),
        "PIP_FIND_LINKS": str(wheels[0].parent),
        "HOME": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIPX_HOME": str(tmp_path / "pipx"),
    }
    if (Path.home() / ".config" / "pip").exists():  # the index that this machine uses
        shutil.copytree(Path.home() / ".config" / "pip", tmp_path / ".config" / "pip")
    ran = subprocess.run(
        ["bash", "-euc", line.replace(" serve", " --version")],
        cwd=tmp_path,
        env=environment(PATH=f"{tools}:/usr/bin:/bin", UV_PYTHON=sys.executable, **places),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "payment-sandbox, version " in ran.stdout, ran.stdout + ran.stderr[-3000:]


@pytest.mark.prove
def test_testcontainers_take_the_image_in_python(tools: Path, tmp_path: Path) -> None:
    """As far as it goes without an engine: everything but the start."""
    (block,) = (block for block in PAGE if block.file == "testcontainers.py")
    (tmp_path / "recipe.py").write_text(block.text)
    no_engine = "import docker; from unittest.mock import MagicMock; docker.from_env = MagicMock()"
    script = f"{no_engine}; from recipe import sandbox; print(sandbox.image, sandbox.ports, sandbox.env)"
    ran = run_command([str(tools / "python"), "-c", script], tmp_path)
    assert ran.stdout.startswith("paymentsandbox/payment-sandbox {"), ran.stderr[-2000:]
    assert "SANDBOX_CONTROL_TOKEN" in {parameter.envvar for parameter in serve.params}


@pytest.mark.prove
def test_testcontainers_take_the_image_in_node(tmp_path: Path) -> None:
    """The same in the other language."""
    require("node", "npm")
    (block,) = (block for block in PAGE if block.file == "testcontainers.mjs")
    (tmp_path / "recipe.mjs").write_text(block.text)
    fetched(["npm", "install", "--silent", "--no-audit", "--no-fund", "testcontainers@11"], tmp_path)
    script = "import('./recipe.mjs').then(({ sandbox }) => console.log(sandbox.constructor.name))"
    ran = run_command(["node", "-e", script], tmp_path)
    assert ran.stdout.strip() == "GenericContainer", ran.stderr[-2000:]
