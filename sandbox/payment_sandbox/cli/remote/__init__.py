"""All commands for a running server."""

from typing import Final

from payment_sandbox.cli.remote import orders, project, server, webhooks

COMMANDS: Final = (
    server.health,
    project.clock,
    orders.orders,
    orders.order,
    orders.pay,
    orders.act,
    orders.trigger,
    webhooks.webhooks,
    webhooks.redeliver,
    webhooks.listen,
    server.agenda,
    server.journal,
    server.review,
    server.wait,
    server.watch,
    project.scenario,
    project.faults,
    project.settings,
    project.projects,
    project.servers,
    project.reset,
)
