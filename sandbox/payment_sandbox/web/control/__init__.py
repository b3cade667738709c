"""The control API."""

from payment_sandbox.web.control import (
    clock_control,
    health_control,
    orders_control,
    scenarios_control,
    traffic_control,
)
from payment_sandbox.web.control.control_blueprint import control
from payment_sandbox.web.control.declaring import COMMANDS
from payment_sandbox.web.control.projects_control import create_project
from payment_sandbox.web.control.waiting_control import wait

__all__ = [
    "COMMANDS",
    "clock_control",
    "control",
    "create_project",
    "health_control",
    "orders_control",
    "scenarios_control",
    "traffic_control",
    "wait",
]
