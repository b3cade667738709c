"""All commands for a running server."""

from typing import Final

from payment_sandbox.cli.remote import (
    derived,
    order_commands,
    project_commands,
    server_commands,
    webhook_commands,
)

OWN: Final = (
    server_commands.health,
    project_commands.clock,
    order_commands.orders,
    order_commands.order,
    order_commands.pay,
    order_commands.act,
    order_commands.trigger,
    webhook_commands.webhooks,
    webhook_commands.redeliver,
    webhook_commands.listen,
    server_commands.journal,
    server_commands.review,
    server_commands.wait,
    server_commands.watch,
    project_commands.scenario,
    project_commands.faults,
    project_commands.settings,
    project_commands.projects,
    project_commands.servers,
    project_commands.reset,
)
COVERED: Final = {
    "read_clock": project_commands.clock,
    "change_clock": project_commands.clock,
    "advance": project_commands.clock,
}
"""The calls with a command of their own."""

COMMANDS: Final = (*OWN, *derived.derived_commands(frozenset(COVERED)))
