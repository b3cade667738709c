"""Tools in folders outside the checkout; remove ``~/.cache/payment-sandbox-tests`` to get newer ones."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.howto.languages import fetched
from tests.requirements import requirements
from tests.support.environments import cached
from tests.support.tools import require


def python_with(name: str, packages: Sequence[str]) -> str:
    """Return the Python of an environment with these packages, and with what the sandbox requires."""
    needed = [*packages, "pytest", *requirements("serve")]

    def make(folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        fetched([*pip, "--disable-pip-version-check", *needed], folder)

    return str(cached(name, needed, make) / "bin" / "python")


def version_in(python: str, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def from_debian(packages: Sequence[str]) -> Path:
    """Return a folder with the files of Debian's packages, which are not installed."""
    require("apt", "dpkg")

    def make(folder: Path) -> None:
        names = " ".join(packages)
        download = (
            f"apt-get download -qq {names} || {{ apt-get update -qq && apt-get download -qq {names}; }}"
        )
        unpack = "for package in *.deb; do dpkg -x $package . && rm $package; done"
        fetched(["sh", "-c", f"({download}) && {unpack}"], folder)

    return cached("debian", packages, make)
