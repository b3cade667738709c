"""Virtual environments with wheels of this project and libraries of this environment."""

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


def environment_with(wheels: Sequence[Path], folder: Path, without: Collection[str] = ()) -> Path:
    """Make an environment, and return the folder of its programs.

    Libraries come from this environment, ``without`` those of these names. A line in a ``.pth`` file adds a
    folder without following ``.pth`` files there, so the checkout is not used.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    (packages / "sitecustomize.py").write_text(WITHOUT.format(blocked=sorted(without)) if without else "")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    options = ["--no-deps", "--ignore-installed", "--disable-pip-version-check"]
    if wheels:
        subprocess.run([*install, *options, *map(str, wheels)], check=True, capture_output=True)
    return folder / "bin"
