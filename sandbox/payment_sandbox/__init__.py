"""A high-fidelity sandbox of a payment-orders API, with a clock that you control."""

from payment_sandbox import interrupts as interrupts  # must come first, because the other imports take time

# isort: split
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.loading import load_module
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from payment_sandbox.app import create_app
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.client.errors import SandboxError
    from payment_sandbox.client.receiver import WebhookReceiver
    from payment_sandbox.judge.books import BookEntry
    from payment_sandbox.scenarios.effects import (
        Answer,
        Delay,
        Drop,
        Duplicate,
        ErrorStatus,
        Fault,
        Hang,
        RateLimit,
        Reset,
        Swap,
        Timeout,
        Together,
        Truncate,
    )
    from payment_sandbox.testing.project_fixture import PaymentJobWarning, PaymentSandbox
    from payment_sandbox.testing.reviews import PaymentReviewWarning
    from payment_sandbox.testing.servers import PaymentSandboxServer
    from payment_sandbox.testing.unittesting import PaymentSandboxMixin
    from payment_sandbox.web.answers import records as answers

__all__ = [
    "Answer",
    "BookEntry",
    "Delay",
    "Drop",
    "Duplicate",
    "ErrorStatus",
    "Fault",
    "Hang",
    "PaymentJobWarning",
    "PaymentReviewWarning",
    "PaymentSandbox",
    "PaymentSandboxMixin",
    "PaymentSandboxServer",
    "RateLimit",
    "Reset",
    "SandboxClient",
    "SandboxError",
    "Swap",
    "Timeout",
    "Together",
    "Truncate",
    "WebhookReceiver",
    "__version__",
    "answers",
    "create_app",
]

_MODULE_OF: Final = {
    "BookEntry": "payment_sandbox.judge.books",
    "PaymentJobWarning": "payment_sandbox.testing.project_fixture",
    "PaymentReviewWarning": "payment_sandbox.testing.reviews",
    "PaymentSandbox": "payment_sandbox.testing.project_fixture",
    "PaymentSandboxMixin": "payment_sandbox.testing.unittesting",
    "PaymentSandboxServer": "payment_sandbox.testing.servers",
    "SandboxClient": "payment_sandbox.client.client",
    "SandboxError": "payment_sandbox.client.errors",
    "WebhookReceiver": "payment_sandbox.client.receiver",
    "create_app": "payment_sandbox.app",
}


def __getattr__(name: str) -> Any:
    """Import names lazily, so that the pytest plugin stays cheap to load."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "answers":  # the types of the control API's answers
        return load_module("payment_sandbox.web.answers.records")
    return getattr(load_module(_MODULE_OF.get(name, "payment_sandbox.scenarios.effects")), name)


def __dir__() -> list[str]:
    """List the public names."""
    return __all__
