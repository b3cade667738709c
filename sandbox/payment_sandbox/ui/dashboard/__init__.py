"""The dashboard: the history of a project, and tools for it."""

from payment_sandbox.ui.dashboard import (
    clock_bar,
    entrance,
    front_page,
    mistakes,
    order_page,
    requests,
    settings_page,
    simulate,
    snippets,
)
from payment_sandbox.ui.dashboard.frame import FACE

__all__ = [
    "FACE",
    "clock_bar",
    "entrance",
    "front_page",
    "mistakes",
    "order_page",
    "requests",
    "settings_page",
    "simulate",
    "snippets",
]
