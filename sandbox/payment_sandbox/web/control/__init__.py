"""The control API."""

from payment_sandbox.web.control import orders, traffic
from payment_sandbox.web.control.blueprint import CONTROL
from payment_sandbox.web.control.projects import HEALTH_FACE, PROJECTS_FACE
from payment_sandbox.web.control.waiting import WATCHING

FACES = (PROJECTS_FACE, CONTROL, WATCHING)

__all__ = ["FACES", "HEALTH_FACE", "orders", "traffic"]
