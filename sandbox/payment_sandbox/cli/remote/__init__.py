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
    "clock": ("read_clock", "change_clock", "advance"),
    "orders": ("orders",),
    "order": ("overview", "timeline"),
    "act": ("act",),
    "webhooks": ("webhooks",),
    "redeliver": ("redeliver", "deliver_unsent"),
    "listen": ("next_offers", "report_answer"),
    "journal": ("journal",),
    "review": ("reviewed", "all_findings"),
    "wait": ("wait",),
    "scenario": ("active_scenario", "put_scenario", "scenarios"),
    "faults": ("active_faults", "put_faults", "reset_faults"),
    "settings": ("project", "patch_project"),
    "projects": ("projects", "new_project", "prune_projects", "delete_project"),
    "servers": ("servers",),
    "reset": ("reset",),
}
"""The calls that have commands of their own, by command."""

COMMANDS: Final = (
    *OWN,
    *derived.derived_commands(frozenset(call for calls in COVERED.values() for call in calls)),
)
