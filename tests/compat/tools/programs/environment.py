"""The hooks of behave."""

from payment_sandbox import PaymentSandboxServer


def before_all(context):
    """Start one sandbox for the run."""
    context.server = PaymentSandboxServer()
    context.add_cleanup(context.server.close)


def before_scenario(context, scenario):
    """Create a project for each scenario."""
    context.api = context.server.project()
    context.add_cleanup(context.api.close)
