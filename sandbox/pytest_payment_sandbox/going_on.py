"""Progress of rehearsals under pytest, and what its cache remembers of them."""

from typing import Any, Final
from zlib import crc32

import pytest

from pytest_payment_sandbox.rehearsal.exploring import Explored
from pytest_payment_sandbox.rehearsal.progress import Progress
from pytest_payment_sandbox.rehearsal.remembering import Remembered, Tried

FAILED: Final = "payment-rehearsal"
TRIED: Final = "payment-rehearsal-tried"
STOPPED: Final = "it was stopped; --payment-rehearse-continue goes on there"


def progress_of(config: pytest.Config) -> Progress:
    """The progress of all rehearsals of a session: lines on the terminal, unless pytest is quiet."""
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    is_quiet = terminal is None or config.getoption("verbose") < 0

    def write(line: str) -> None:
        terminal.ensure_newline()
        terminal.write_line(f"payment rehearsal: {line}")
        terminal.flush()

    return Progress(write, is_quiet=is_quiet)


class Memory:
    """What the cache remembers of the rehearsals of a session."""

    def __init__(self, config: pytest.Config) -> None:
        self._cache: Any = getattr(config, "cache", None)  # there is none without its plugin
        self._goes_on = bool(config.getoption("payment_rehearse_continue"))

    def failed(self, nodeid: str) -> list[str]:
        """The variations that failed the last time."""
        names: list[str] = self._get(FAILED, nodeid) or []
        return names

    def tried(self, nodeid: str) -> Remembered | None:
        """What was tried by the rehearsal that was stopped, if this one goes on with it."""
        tried: Remembered | None = self._get(TRIED, nodeid) if self._goes_on else None
        return tried

    def remember(self, nodeid: str, explored: Explored, tried: Tried, *, is_stopped: bool) -> None:
        """Remember what failed, and what was tried if there is more to try."""
        if self._cache is None:
            return
        names = [finding.name for finding in explored.findings if finding.variation]
        self._cache.set(_key(FAILED, nodeid), names)
        is_partial = is_stopped or explored.untried > 0
        if is_partial or self._get(TRIED, nodeid):
            self._cache.set(_key(TRIED, nodeid), tried.remembered if is_partial else None)

    def _get(self, kind: str, nodeid: str) -> Any:
        return self._cache.get(_key(kind, nodeid), None) if self._cache is not None else None


def _key(kind: str, nodeid: str) -> str:
    return f"{kind}/{crc32(nodeid.encode())}"
