"""Virtual environments with the wheel of the checkout."""

import subprocess
import sys
import sysconfig
from collections.abc import Collection, Sequence
from pathlib import Path

WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Without())
"""


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
