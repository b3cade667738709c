"""Restores the projects of a state file when a server starts again."""

from datetime import datetime

from payment_sandbox.kernel.ids import Ids
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.clock import FROZEN, RUNNING
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.services import Services
from payment_sandbox.projects.settings import Settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.storage.codec import decode
from payment_sandbox.storage.format import FORMAT, ServerRows, StateRefused, in_one_line
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
    try:
        rows: ServerRows = decode(ServerRows, file.server, "server")
        registry = Registry(
            services,
            file,
            catalogue,
            ids=Ids(rows.ids.seed, rows.ids.counts) if rows.ids is not None else ids,
            clock=clock,
            deleted_keys=frozenset(rows.deleted),
        )
        for stored in file.projects:
            registry.add(_project(stored, services, file, registry))
    except (Invalid, KeyError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise StateRefused(f"{file.path} is damaged: {in_one_line(error)}") from error
    return registry


def _project(stored: StoredProject, services: Services, file: StateFile, registry: Registry) -> Project:
    identity: Identity = decode(Identity, stored.identity, "identity")
    if identity.start.mode not in (RUNNING, FROZEN):
        raise Invalid([Violation("identity.start.mode", f"must be {RUNNING} or {FROZEN}")])
    if registry.has_digest(identity.key_digest) or registry.find_by_id(identity.project_id) is not None:
        raise Invalid([Violation("identity", "is that of another project, too")])
    storage = file.storage(identity, services.real)
    project = Project(identity, Settings(), services, storage)
    real_at = decode(datetime, stored.real_at, "real_at") if stored.real_at is not None else None
    resume(project, {"format": FORMAT, **stored.state}, real_at)
    return project
