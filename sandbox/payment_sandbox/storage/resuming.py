"""Restores the projects of a state file when a server starts again."""

from datetime import datetime
from typing import Any

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.clock import RUNNING, ClockStart
from payment_sandbox.projects.project import Identity, Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.services import Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.storage.format import FORMAT, StateRefused
from payment_sandbox.storage.snapshot import resume
from payment_sandbox.storage.sqlite import StateFile
from payment_sandbox.storage.sqlite_file import StoredProject


def resumed_registry(
    services: Services, file: StateFile, catalogue: Catalogue, *, ids: Ids, clock: str = RUNNING
) -> Registry:
    """A registry with all projects of the file; ``ids`` is used if the file has none yet.

    Raises:
        StateRefused: the content of the file is inconsistent.
    """
    stored_ids = file.server.get("ids")
    deleted = frozenset(file.server.get("deleted", ()))
    registry = Registry(
        services,
        file,
        catalogue,
        ids=Ids(**stored_ids) if stored_ids is not None else ids,
        clock=clock,
        deleted_keys=deleted,
    )
    try:
        for stored in file.projects:
            registry.add(_project(stored, services, file))
    except (Invalid, KeyError, ValueError, TypeError) as error:
        raise StateRefused(f"{file.path} is damaged: {error}") from error
    return registry


def _project(stored: StoredProject, services: Services, file: StateFile) -> Project:
    identity = _identity(stored.identity)
    storage = file.storage(identity, services.real)
    project = Project(identity, Settings(), services, storage)
    real_at = datetime.fromisoformat(stored.real_at) if stored.real_at else None
    resume(project, {"format": FORMAT, **stored.state}, real_at)
    return project


def _identity(body: Any) -> Identity:
    at = body["start"]["at"]
    start = ClockStart(body["start"]["mode"], datetime.fromisoformat(at) if at else None)
    return Identity(**{**body, "start": start})
