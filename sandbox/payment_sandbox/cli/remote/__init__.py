"""All commands for a running server."""

from payment_sandbox.cli.remote import (  # noqa: F401 (each module declares commands)
    derived,
    order_commands,
    project_commands,
    server_commands,
    webhook_commands,
)
from payment_sandbox.cli.remote.command_run import COMMANDS, COVERED

derived.declare_commands(frozenset(call for calls in COVERED.values() for call in calls))

__all__ = ["COMMANDS", "COVERED"]
