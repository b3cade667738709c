"""The single file: built as by ``make dist``, and run with every installed Python."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.dist import build, index_files
from tests.support.commands import run_program
from tests.support.documentation import environment
from tests.support.tools import unavailable

pytestmark = pytest.mark.timeout(600)  # it downloads the packages of every platform


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """The single file."""
    try:
        return build(tmp_path / "built", tmp_path / "wheels")[-1]
    except subprocess.CalledProcessError as failed:
        if "download" not in failed.cmd:
            pytest.fail(failed.stderr.decode()[-2000:])
        unavailable(f"the packages of the single file cannot be downloaded: {failed.stderr.decode()[-200:]}")


def pythons() -> list[str]:
    """Return the installed Pythons from 3.11 on."""
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14))]
    versions = Path.home() / ".pyenv" / "versions"
    candidates += [str(path) for minor in (12, 13, 14) for path in versions.glob(f"3.{minor}.*/bin/python")]
    return [each for each in dict.fromkeys(filter(None, candidates)) if _works(each)]


def _works(python: str) -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return run_program([python, "-c", check], None, 20).returncode == 0


def check_serving(python: str, single: Path, tmp_path: Path) -> None:
    """The single file serves https, documentation and scenarios, without this checkout."""
    ready = tmp_path / "ready.json"
    options = ["serve", "--port", "0", "--tls", "--ready-file", str(ready), "--scenario", "second-try-works"]
    variables = environment(SHIV_ROOT=str(tmp_path / "shiv"), XDG_STATE_HOME=str(tmp_path / "state"))
    command = [python, "-I", str(single), *options]
    with subprocess.Popen(command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "the server has ended"
            addresses = json.loads(ready.read_text())
            page = requests.get(
                f"{addresses['url']}/docs/operation/", verify=addresses["ca_file"], timeout=10
            )
            assert "<h1" in page.text
            rules = requests.get(
                f"{addresses['listening']}/control/fidelity/",
                auth=("sandbox-key", ""),
                verify=addresses["ca_file"],
                timeout=10,
            )
            assert all(rule["tests"] for rule in rules.json()["items"])
        finally:
            process.terminate()


def check_file(single: Path) -> None:
    """The single file is small and executable with any python3."""
    assert single.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert single.stat().st_mode & 0o100
    assert single.stat().st_size < 40_000_000


def test_the_single_file(single: Path, tmp_path: Path) -> None:
    """The single file works; a single test, so that it is built once."""
    files = index_files(sorted(single.parent.iterdir()))
    # without the packages for npm and Composer
    assert [path.name.partition("-")[0] for path in files] == ["payment_sandbox"] * 2
    check_file(single)
    for number, python in enumerate(pythons()):
        folder = tmp_path / str(number)
        folder.mkdir()
        check_serving(python, single, folder)
