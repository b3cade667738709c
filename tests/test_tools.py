"""The tests name the system packages that are missing, and CI installs all of them."""

import re

import pytest

from tests.support.packages import ROOT
from tests.support.tools import PACKAGES, require

NEEDED_BY_CI_ITSELF = {"apt", "util-linux", "dpkg", "git", "make"}
REQUIRED = re.compile(r"^ +require\(([^)\n]*)", re.MULTILINE)
"""Calls of ``require`` in tests."""


def test_a_test_without_its_package_is_skipped_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names each missing package, and no other."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setitem(PACKAGES, "junit5", ("/usr/share/java/no-such-*.jar",))
    with pytest.raises(pytest.skip.Exception, match="not installed: junit5, no-such-program; "):
        require("util-linux", "junit5", "no-such-program")
    require("util-linux")


def test_a_missing_package_is_a_failure_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """CI has every package, so a missing one is a mistake in its list."""
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="not installed: no-such-program"):
        require("no-such-program")


def test_ci_installs_the_packages_of_the_tests() -> None:
    """Each package that a test requires is installed by CI, or CI could not have started without it."""
    words = set(re.findall(r"[a-z0-9-]+", (ROOT / ".ci" / "run").read_text(encoding="utf-8")))
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if file.name != "test_tools.py"]
    calls = [call for file in files for call in REQUIRED.findall(file.read_text(encoding="utf-8"))]
    named = {name for call in calls for name in re.findall(r'"([a-z0-9-]+)"', call)}
    assert {"curl", "npm"} <= named
    assert (set(PACKAGES) | named) - words <= NEEDED_BY_CI_ITSELF
