"""The single file: built as by ``make dist``, and run with every Python that is here."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
import requests

from tests.dist import build
from tests.support.documentation import environment


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file."""
    try:
        folder = tmp_path_factory.mktemp("dist")
        return build(folder / "built", folder / "wheels")[1]
    except subprocess.CalledProcessError as failed:
        if "CI" in os.environ:
            pytest.fail(failed.stderr.decode()[-2000:])
        pytest.skip("the packages of the single file cannot be fetched")


def pythons() -> list[str]:
    """The Pythons from 3.11 on that are on this machine."""
    candidates = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in (11, 12, 13, 14))]
    versions = Path.home() / ".pyenv" / "versions"
    candidates += [str(path) for minor in (12, 13, 14) for path in versions.glob(f"3.{minor}.*/bin/python")]
    return [found for found in dict.fromkeys(filter(None, candidates)) if _works(found)]


def _works(python: str) -> bool:
    check = "import sys; sys.exit(sys.version_info < (3, 11))"
    return subprocess.run([python, "-c", check], capture_output=True, check=False, timeout=20).returncode == 0


@pytest.mark.parametrize("python", pythons())
def test_it_serves_without_an_installation(python: str, single: Path, tmp_path: Path) -> None:
    """With https, documentation and scenarios; nothing of this checkout is used."""
    ready = tmp_path / "ready.json"
    options = ["serve", "--port", "0", "--tls", "--ready-file", str(ready), "--scenario", "second-try-works"]
    variables = environment(SHIV_ROOT=str(tmp_path / "shiv"), XDG_STATE_HOME=str(tmp_path / "state"))
    command = [python, "-I", str(single), *options]
    with subprocess.Popen(command, env=variables, cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        try:
            while not ready.exists():
                assert process.poll() is None
                Event().wait(0.05)
            said = json.loads(ready.read_text())
            page = requests.get(f"{said['url']}/docs/https/", verify=said["ca_file"], timeout=10)
            assert "<h1" in page.text
            rules = requests.get(
                f"{said['listening']}/control/fidelity/", auth=("sandbox-key", ""), timeout=10
            )
            assert all(rule["tests"] for rule in rules.json()["items"])
        finally:
            process.terminate()


def test_it_is_small_and_runs_by_itself(single: Path) -> None:
    """One file to copy; the system runs it with any python3."""
    assert single.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert single.stat().st_mode & 0o100
    assert single.stat().st_size < 40_000_000
