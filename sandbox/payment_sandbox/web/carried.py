"""The typed state of the application and of each request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_bytes
from typing import Any, Final

from flask import Flask, current_app, g

from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry

KEY: Final = "payment_sandbox"


@dataclass(slots=True)
class Application:
    """What all requests of a server share."""

    registry: Registry
    public_url: str
    control_token: str | None
    hosts: frozenset[str]
    make_app: Any  # builds another application, such as the one that plays the examples
    forgery_secret: bytes = field(default_factory=lambda: token_bytes(32))
    docs: dict[str, str] = field(default_factory=dict)  # rendered documentation pages, by name
    openapi: str | None = None  # the OpenAPI description, once built

    def attach(self, app: Flask) -> None:
        """Store this on the Flask app."""
        app.extensions[KEY] = self


@dataclass(slots=True)
class Exchange:
    """What the sandbox knows about one request."""

    project: Project | None = None
    real_at: datetime | None = None  # when it arrived
    held: tuple[Project, Epoch, int] | None = None  # where its webhooks are held, and their key
    body: Any = None
    has_body: bool = False  # the body has been parsed
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rule: str | None = None  # the rule that refused it
    violations: list[Violation] = field(default_factory=list)
    fault: Mapping[str, Any] = field(default_factory=dict)
    is_cut: bool = False  # a fault cuts its connection
    cut_status: int | None = None  # of the lost response, if there was one
    order_id: str | None = None
    transaction_id: str | None = None  # of the attempt that it created


def application(app: Flask | None = None) -> Application:
    """The state of this application."""
    found: Application = (app or current_app).extensions[KEY]
    return found


def exchange() -> Exchange:
    """The state of this request."""
    found: Exchange | None = g.get("exchange")
    if found is None:
        found = g.exchange = Exchange()
    return found
