"""Finds what other distributions add: commands, shared databases and metrics.

Each registers an entry point; nothing here knows more of it than its name. ``INSTALL`` says what to type for
a name that no installed distribution has.
"""

import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

COMMANDS: Final = "payment_sandbox.commands"
DATABASES: Final = "payment_sandbox.databases"
METRICS: Final = "payment_sandbox.metrics"

SERVER: Final = "payment-sandbox[server]"
MCP: Final = "payment-sandbox[mcp]"
TLS: Final = "payment-sandbox[tls]"
COMPANY: Final = "payment-sandbox-company"
OF_COMMANDS: Final = {
    "rehearse": "pytest-payment-sandbox",
    "verify": "payment-sandbox-verify",
    "import-journal": "payment-sandbox-verify",
}
"""The distribution of each command that is not in this one."""


class NotInstalled(Exception):
    """A distribution, or an extra of this one, is not installed; the message says how to install it."""

    def __init__(self, what: str, distribution: str) -> None:
        is_of_pipx = "pipx" in Path(sys.prefix).parts  # where pip alone installs beside it
        install = "pipx runpip payment-sandbox install" if is_of_pipx else "pip install"
        super().__init__(f"{what} needs {distribution}: {install} '{distribution}'")


def missing_library(error: ModuleNotFoundError) -> NotInstalled:
    """Say which extra brings a library that is not installed.

    Raises:
        ModuleNotFoundError: the same error, for a module of ours.
    """
    if error.name is None or error.name.startswith(__package__):
        raise error
    return NotInstalled(f"this ({error.name} is missing)", SERVER)


def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; ``load()`` gives what they stand for."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load(group: str, name: str, distribution: str, what: str) -> Any:
    """Load what a distribution registered under a name.

    Raises:
        NotInstalled: it is not installed, or a library of it is missing.
    """
    entry = installed(group).get(name)
    if entry is None:
        raise NotInstalled(what, distribution)
    try:
        return entry.load()
    except ImportError as missing:
        raise NotInstalled(f"{what} ({missing})", distribution) from missing
