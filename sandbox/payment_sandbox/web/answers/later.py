"""Shapes that are made when the API is described; thirty classes that no request needs take long to make."""

from importlib import import_module
from typing import NamedTuple

from marshmallow import Schema

CONTROL = "payment_sandbox.web.answers.control_shapes"
HISTORY = "payment_sandbox.web.answers.history_shapes"
OVERVIEW = "payment_sandbox.web.answers.overview_shapes"


class Later(NamedTuple):
    """A shape of the control API, by its name in a module."""

    name: str
    module: str = CONTROL

    @property
    def shape(self) -> type[Schema]:
        """The shape itself."""
        found: type[Schema] = getattr(import_module(self.module), self.name)
        return found
