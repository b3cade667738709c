"""The control API."""

from payment_sandbox.web.control import clock_control, orders_control, scenarios_control, traffic_control
from payment_sandbox.web.control.control_face import CONTROL
from payment_sandbox.web.control.declaring import COMMANDS
from payment_sandbox.web.control.projects_control import PROJECTS_FACE, create_project
from payment_sandbox.web.control.waiting_control import WATCHING

FACES = (PROJECTS_FACE, CONTROL, WATCHING)

__all__ = [
    "COMMANDS",
    "FACES",
    "clock_control",
    "create_project",
    "orders_control",
    "scenarios_control",
    "traffic_control",
]
