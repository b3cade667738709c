"""Servers with TLS keep their authority in a folder of the test's own."""

from pathlib import Path

import pytest


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's state folder of the test's own; returns the folder of the authority."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "payment-sandbox"
