"""The control API."""

from payment_sandbox.web.control import clock_control, order_routes, traffic_routes
from payment_sandbox.web.control.control_face import CONTROL
from payment_sandbox.web.control.declaring import COMMANDS
from payment_sandbox.web.control.project_routes import PROJECTS_FACE
from payment_sandbox.web.control.waiting_routes import WATCHING

FACES = (PROJECTS_FACE, CONTROL, WATCHING)

__all__ = ["COMMANDS", "FACES", "clock_control", "order_routes", "traffic_routes"]
