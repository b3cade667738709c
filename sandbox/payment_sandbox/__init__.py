"""A high-fidelity sandbox of a payment-orders API, with a clock that you control."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.client.errors import SandboxError
    from payment_sandbox.testing.project import PaymentSandbox
    from payment_sandbox.testing.receiver import WebhookReceiver

__all__ = ["PaymentSandbox", "SandboxClient", "SandboxError", "WebhookReceiver", "__version__"]

_HOME_OF: Final = {
    "PaymentSandbox": "payment_sandbox.testing.project",
    "SandboxClient": "payment_sandbox.client.client",
    "SandboxError": "payment_sandbox.client.errors",
    "WebhookReceiver": "payment_sandbox.testing.receiver",
}


def __getattr__(name: str) -> Any:
    """Import names lazily, so that the pytest plugin stays cheap to load."""
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
