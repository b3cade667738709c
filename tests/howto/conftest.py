"""The wheel; the projects run in environments of their own: see ``test_projects.py``."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documentation import ROOT

collect_ignore_glob = ["projects/*"]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (built,) = folder.glob("*.whl")
    return built
