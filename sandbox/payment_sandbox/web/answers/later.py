"""Shapes that are made when the API is described; thirty classes that no request needs take long to make."""

from importlib import import_module
from typing import NamedTuple

from marshmallow import Schema

MODULE = "payment_sandbox.web.answers.control_shapes"


class Later(NamedTuple):
    """A shape of the control API, by its name in ``control_shapes``."""

    name: str

    @property
    def shape(self) -> type[Schema]:
        """The shape itself."""
        found: type[Schema] = getattr(import_module(MODULE), self.name)
        return found
