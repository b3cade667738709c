"""All commands for a running server."""

from payment_sandbox.cli.remote import (  # noqa: F401 (each module declares commands)
    order_commands,
    project_commands,
    server_commands,
    webhook_commands,
)
from payment_sandbox.cli.remote.command_run import COMMANDS

__all__ = ["COMMANDS"]
