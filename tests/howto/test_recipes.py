"""The recipes for CI: their steps run, and their variables are those of ``serve``."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from payment_sandbox.ui.docs.library import read_source
from tests.howto.languages import fetched
from tests.support.blocks import Block, blocks
from tests.support.documentation import ROOT, of, run_command
from tests.support.environments import cached
from tests.support.ports import free_port
from tests.support.tools import require

PAGE = list(blocks(read_source("operation").partition("\n## One sandbox for a team\n")[0]))
INSTALLATION = re.compile(
    r"pip install -r requirements\.txt \./payment-sandbox pytest( pytest-xdist)?|pipx install '\./payment-sandbox\[server\]'"
)
CHECKOUT = {"repository": "${{ vars.SANDBOX_REPOSITORY }}", "path": "payment-sandbox"}


RECIPES = [block for block in of("yaml", "operation") if re.search("steps:|script:", block.values[0].text)]


@pytest.mark.prove
@pytest.mark.parametrize("block", RECIPES)
def test_the_steps_of_a_recipe_run(block: Block, tmp_path: Path) -> None:
    """All steps except for the installation from the clone run with this installation, on a free port."""
    data = YAML(typ="safe", pure=True).load(block.text)
    (job,) = data["jobs"].values() if "jobs" in data else data.values()
    steps = [step["run"] for step in job["steps"] if "run" in step] if "steps" in job else job["script"]
    if "npm test" in steps:
        require("npm")
    prepare(tmp_path)
    port = str(free_port())
    if "steps" in job:
        assert CHECKOUT in [step.get("with") for step in job["steps"]]
        os.symlink(ROOT, tmp_path / "payment-sandbox")
    job_variables = {**job.get("env", {}), **job.get("variables", {})}
    variables = {name: with_port(value, port) for name, value in job_variables.items()}
    if "SANDBOX_REPOSITORY" in variables:
        variables["SANDBOX_REPOSITORY"] = ROOT.as_uri()
    for step in steps:
        if step.startswith(("pip install ", "pipx install ")):
            assert INSTALLATION.fullmatch(step), step
            for folder in re.findall(r"\./([\w/-]+)", step):
                assert (tmp_path / folder / "pyproject.toml").is_file()
            continue
        script = ["bash", "-euc", with_port(step, port)]
        result = run_command(script, tmp_path, 120, **variables)
        output = result.stdout[-3000:] + result.stderr[-1000:]
        if "-budget" in step:  # the shops of the pages have no time limits
            assert result.returncode in (0, 1), output
            assert " variations" in result.stdout, output
        else:
            assert result.returncode == 0, output
    for step in job.get("steps", ()):
        if "upload-artifact" in step.get("uses", ""):
            assert (tmp_path / step["with"]["path"]).exists()
    if (tmp_path / "ready.json").exists():
        os.kill(json.loads((tmp_path / "ready.json").read_text())["pid"], 15)


START_SCRIPTS = [block.text for block in PAGE if "until test -s ready.json" in block.text]


@pytest.mark.prove
@pytest.mark.parametrize("number", range(2))
def test_a_recipe_with_a_wrong_option_ends_at_once(number: int, tmp_path: Path) -> None:
    """The step prints the command's error message, but does not report that its process ended."""
    text = START_SCRIPTS[number]
    if "jobs:" in text:
        job = YAML(typ="safe", pure=True).load(text)["jobs"]["test"]
        (text,) = (step["run"] for step in job["steps"] if "ready.json" in step.get("run", ""))
    result = run_command(["bash", "-c", text.replace("serve", "serve --colour")], tmp_path, 100)
    assert result.returncode == 1
    assert "No such option" in result.stdout
    assert "process" not in result.stdout + result.stderr


def prepare(folder: Path) -> None:
    """Write a repository with tests in Python and in another language."""
    (first, *_) = (block for block in blocks(read_source("pytest")) if block.language == "python")
    (folder / "test_shop.py").write_text(first.text)
    shutil.copy(Path(__file__).parent / "programs" / "suite.mjs", folder)
    (folder / "package.json").write_text(json.dumps({"scripts": {"test": "node suite.mjs"}}))


def with_port(text: str, port: str) -> str:
    """Replace port 8080, which may be in use, and the host names and programs of CI."""
    for host in ("localhost", "sandbox", "127.0.0.1"):
        text = text.replace(f"{host}:8080", f"127.0.0.1:{port}")
    text = text.replace("python3 ", f"{sys.executable} ").replace("budget 10m", "budget 5s")
    return text.replace("sandbox serve", f"sandbox serve --port {port}")


@pytest.fixture(scope="module")
def tools() -> Path:
    """uv, pipx and testcontainers, in a separate environment."""
    packages = ["uv", "pipx", "testcontainers"]

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
        fetched([*pip, *packages], folder)

    return cached("tools", packages, make) / "bin"


@pytest.mark.prove
@pytest.mark.parametrize("start", ["uvx", "pipx run"])
def test_it_runs_without_an_installation(start: str, tools: Path, wheel: Path, tmp_path: Path) -> None:
    """The page's command runs with our wheel from a folder instead of an index."""
    (line,) = (
        part
        for row in read_source("operation").splitlines()
        for part in row.split("`")
        if part.startswith(f"{start} ")
    )
    variables = {
        "UV_FIND_LINKS": str(wheel.parent),
        "PIP_FIND_LINKS": str(wheel.parent),
        "HOME": str(tmp_path),
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIPX_HOME": str(tmp_path / "pipx"),
    }
    if (Path.home() / ".config" / "pip").exists():  # the index that this machine uses
        shutil.copytree(Path.home() / ".config" / "pip", tmp_path / ".config" / "pip")
    variables |= {"PATH": f"{tools}:/usr/bin:/bin", "UV_PYTHON": sys.executable}
    script = ["bash", "-euc", line.replace(" serve", " --version")]
    result = run_command(script, tmp_path, 280, **variables)
    assert "payment-sandbox, version " in result.stdout, result.stdout + result.stderr[-3000:]
