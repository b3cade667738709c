"""The single file: built as by ``make dist``, and run with every Python that is here."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.dist import build, index_files
from tests.support.documentation import environment

pytestmark = pytest.mark.timeout(600)  # it fetches the packages of every platform

DISTRIBUTIONS = {
    "payment_sandbox", "payment_sandbox_company", "payment_sandbox_verify", "pytest_payment_sandbox",
}  # fmt: skip


@pytest.fixture
def single(tmp_path: Path) -> Path:
    """The file."""
    try:
        return build(tmp_path / "built", tmp_path / "wheels")[-1]
    except subprocess.CalledProcessError as failed:
        if "download" not in failed.cmd:
            pytest.fail(failed.stderr.decode()[-2000:])
        pytest.skip(f"the packages of the single file cannot be fetched: {failed.stderr.decode()[-200:]}")


def pythons() -> list[str]:
    """The Pythons from 3.11 on that are on this machine."""
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14))]
    versions = Path.home() / ".pyenv" / "versions"
    candidates += [str(path) for minor in (12, 13, 14) for path in versions.glob(f"3.{minor}.*/bin/python")]
    return [found for found in dict.fromkeys(filter(None, candidates)) if _works(found)]


def _works(python: str) -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", check], capture_output=True, check=False, timeout=20).returncode == 0


def serves_without_an_installation(python: str, single: Path, tmp_path: Path) -> None:
    """With https, documentation and scenarios; nothing of this checkout is used."""
    ready = tmp_path / "ready.json"
    options = ["serve", "--port", "0", "--tls", "--ready-file", str(ready), "--scenario", "second-try-works"]
    variables = environment(SHIV_ROOT=str(tmp_path / "shiv"), XDG_STATE_HOME=str(tmp_path / "state"))
    command = [python, "-I", str(single), *options]
    with subprocess.Popen(command, env=variables, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline(), "it has ended"
            said = json.loads(ready.read_text())
            page = requests.get(f"{said['url']}/docs/https/", verify=said["ca_file"], timeout=10)
            assert "<h1" in page.text
            rules = requests.get(
                f"{said['listening']}/control/fidelity/", auth=("sandbox-key", ""), timeout=10
            )
            assert all(rule["tests"] for rule in rules.json()["items"])
        finally:
            process.terminate()


def is_small_and_runs_by_itself(single: Path) -> None:
    """One file to copy; the system runs it with any python3."""
    assert single.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert single.stat().st_mode & 0o100
    assert single.stat().st_size < 40_000_000


def test_the_single_file(single: Path, tmp_path: Path) -> None:
    """One test, so that the file is built once."""
    listed = index_files(sorted(single.parent.iterdir()))
    assert {path.name.partition("-")[0] for path in listed} == DISTRIBUTIONS  # none of npm or Composer
    assert len(listed) == 2 * len(DISTRIBUTIONS)
    is_small_and_runs_by_itself(single)
    for number, python in enumerate(pythons()):
        folder = tmp_path / str(number)
        folder.mkdir()
        serves_without_an_installation(python, single, folder)
