"""The dashboard: the history of a project, and tools for it."""

from payment_sandbox.web.dashboard import (
    clock_bar,
    comparison,
    entrance,
    mistakes,
    order,
    orders,
    requests,
    settings,
    simulate,
    snippets,
)
from payment_sandbox.web.dashboard.frame import FACE

__all__ = [
    "FACE",
    "clock_bar",
    "comparison",
    "entrance",
    "mistakes",
    "order",
    "orders",
    "requests",
    "settings",
    "simulate",
    "snippets",
]
