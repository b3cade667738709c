"""The dashboard: the history of a project, and tools for it."""

from payment_sandbox.web.dashboard import (
    clock,
    entrance,
    exports,
    faults,
    orders,
    records,
    settings,
    snippets,
    what_if,
)
from payment_sandbox.web.dashboard.frame import FACE

__all__ = [
    "FACE",
    "clock",
    "entrance",
    "exports",
    "faults",
    "orders",
    "records",
    "settings",
    "snippets",
    "what_if",
]
