"""Servers with TLS keep their certificate authority in a temporary folder."""

from pathlib import Path

import pytest


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a temporary state folder; return the folder of the authority in it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "payment-sandbox"
