"""Virtual environments and package folders, each made once and shared by all processes of a test run."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from inspect import getsource
from pathlib import Path
from typing import Final

CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "payment-sandbox-tests"
"""Folders that later test runs use, too."""

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
"""


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return a folder that ``make`` fills, once for all processes; a failed or killed attempt is repeated."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    complete = folder.with_name(f"{folder.name}.complete")
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (complete.exists() and folder.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            complete.touch()
    return folder


def cached(name: str, contents: Sequence[str], make: Callable[[Path], object]) -> Path:
    """Return a folder for these contents, made once on this machine, and again after a change of ``make``."""
    digest = sha256("\n".join([sys.version, getsource(make), *contents]).encode()).hexdigest()[:12]
    return made_once(CACHE / f"{name}-{digest}", make)


def environment_with(folder: Path, wheel: Path | None = None, without: Collection[str] = ()) -> Path:
    """Make an environment, and return the folder of its programs.

    Libraries come from this environment, ``without`` those of these names. A line in a ``.pth`` file adds a
    folder without following ``.pth`` files there, so the checkout is not used.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (packages / "sitecustomize.py").write_text(WITHOUT.format(blocked=sorted(without)) if without else "")
    if wheel is not None:
        install_wheel(wheel, ["--python", str(python), "install"])
    return folder / "bin"


def install_wheel(wheel: Path, command: Sequence[str]) -> None:
    """Install a wheel without its requirements, with a command of pip such as ``install --target ...``."""
    options = ["--quiet", "--no-index", "--no-deps", "--ignore-installed", "--disable-pip-version-check"]
    pip = [sys.executable, "-m", "pip", *command, *options]
    subprocess.run([*pip, str(wheel)], check=True, capture_output=True)
