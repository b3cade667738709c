"""All commands for a running server."""

from payment_sandbox.cli.remote import commands, listen  # noqa: F401 (each module declares commands)
from payment_sandbox.cli.remote.declaring import COMMANDS

__all__ = ["COMMANDS"]
