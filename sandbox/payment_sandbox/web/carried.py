"""What the application carries along, and what each request does: typed, and made in one place."""

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
    make_app: Any  # builds another application, for what needs one of its own
    forgery_secret: bytes = field(default_factory=lambda: token_bytes(32))
    docs: dict[str, str] = field(default_factory=dict)  # pages of the documentation, once they are made
    openapi: str | None = None  # the description, once it is made

    def attach(self, app: Flask) -> None:
        """Have the application carry it."""
        app.extensions[KEY] = self


@dataclass(slots=True)
class Exchange:
    """What one request finds out on its way to its answer."""

    project: Project | None = None
    real_at: datetime | None = None  # when it came, before all that it caused
    held: tuple[Epoch, int] | None = None  # where its webhooks are held back, and the key for them
    body: Any = None
    has_body: bool = False  # a body was parsed
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    rule: str | None = None  # that refused it
    violations: list[Violation] = field(default_factory=list)
    fault: Mapping[str, Any] = field(default_factory=dict)
    is_cut: bool = False  # a fault cuts its connection
    cut_status: int | None = None  # of the answer that was lost, if there was one
    order_id: str | None = None
    transaction_id: str | None = None  # of the attempt that it made


def application(app: Flask | None = None) -> Application:
    """What this application carries."""
    found: Application = (app or current_app).extensions[KEY]
    return found


def exchange() -> Exchange:
    """What this request carries."""
    found: Exchange | None = g.get("exchange")
    if found is None:
        found = g.exchange = Exchange()
    return found
