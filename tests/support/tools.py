"""What the tests need apart from Python packages: what is missing skips a test, except in CI."""

import os
import shutil
from pathlib import Path
from typing import Final, NoReturn

import pytest

PACKAGES: Final = {
    # a system package: the names of its program, one of which is enough, or its file
    "apt": ("apt-get",),
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "default-jdk-headless": ("javac",),
    "iproute2": ("ip",),
    "junit5": ("/usr/share/java/junit-platform-console.jar",),
    "libnss3-tools": ("certutil",),
    "nginx-light": ("nginx",),
    "nodejs": ("node",),
    "php-cli": ("php",),
    "php-curl": ("/usr/lib/php/*/curl.so",),
    "php-guzzlehttp-guzzle": ("/usr/share/php/GuzzleHttp/autoload.php",),
    "postgresql": ("/usr/lib/postgresql/*/bin/initdb", "initdb"),
    "ruby-rspec": ("rspec",),
    "ruby-webrick": ("/usr/share/rubygems-integration/all/specifications/webrick-*.gemspec",),
    "util-linux": ("unshare",),
}


def find_tool(package: str) -> str | None:
    """Return the path of a package's program or file; a package that is not in the table has one of its name."""
    for name in PACKAGES.get(package, (package,)):
        files = (
            sorted(Path("/").glob(name[1:]), reverse=True) if name.startswith("/") else [shutil.which(name)]
        )
        if files and files[0]:
            return str(files[0])
    return None


def require(*packages: str) -> None:
    """Skip a test whose system packages are not all installed, and name them; in CI, it fails."""
    missing = [package for package in packages if find_tool(package) is None]
    if missing:
        unavailable(f"not installed: {', '.join(missing)}; .ci/run installs what is missing")


def unavailable(reason: str) -> NoReturn:
    """Skip a test because of the machine; in CI, it fails."""
    if "CI" in os.environ:
        pytest.fail(reason)
    pytest.skip(reason)
