"""The dashboard: all that happened in a project, and what to do about it."""

from payment_sandbox.web.dashboard import (
    again,
    clock,
    copies,
    entrance,
    exports,
    faults,
    orders,
    records,
    settings,
)
from payment_sandbox.web.dashboard.frame import FACE

__all__ = [
    "FACE",
    "again",
    "clock",
    "copies",
    "entrance",
    "exports",
    "faults",
    "orders",
    "records",
    "settings",
]
