"""The control API."""

from payment_sandbox.web.control import history, orders
from payment_sandbox.web.control.blueprint import control
from payment_sandbox.web.control.projects import health, projects
from payment_sandbox.web.control.watching import watching

CONTROL = (health, projects, control, watching)

__all__ = ["CONTROL", "history", "orders"]
