"""Projects and registries without a server."""

from datetime import datetime
from typing import Any

from werkzeug.test import Client

from payment_sandbox.app import build_app
from payment_sandbox.kernel.ids import Ids
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.projects.caller import Caller, SavedAnswer, TrackedRequest
from payment_sandbox.projects.clock import RUNNING, RealTime, Start
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.identity import Identity
from payment_sandbox.projects.project import Project, Services
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import Settings, check_scenario_settings
from payment_sandbox.scenarios.catalogue import Catalogue
from payment_sandbox.serving.services import REAL_TIME
from payment_sandbox.storage.memory import MemoryStorage
from payment_sandbox.storage.sql import load_projects
from payment_sandbox.storage.sqlite import StateFile


def made_project(at: datetime, services: Services | None = None, **settings: Any) -> Project:
    """Create a project with a frozen clock; without services, no webhooks are delivered."""
    identity = Identity("p", "m", "key", Start("frozen", at))
    create_store = MemoryStorage().create_store
    project = Project(identity, Settings(**settings), services or Services(REAL_TIME), create_store)
    project.begin()
    return project


def catalogue() -> Catalogue:
    """Return the scenarios of a server without scenarios of its own."""
    return Catalogue(METHOD_NAMES, check_scenario_settings, default=default_scenario())


def made_registry(
    seed: int | None = None, clock: str = RUNNING, services: Services | None = None
) -> Registry:
    """Create a registry; without services, it has no background workers."""
    ids = Ids(seed) if seed is not None else None
    return Registry(services or Services(REAL_TIME), MemoryStorage(), catalogue(), ids=ids, clock=clock)


def stored_registry(file: StateFile, at: datetime) -> Registry:
    """Return the registry of a state file, at a fixed time and without background workers."""
    services = Services(RealTime(lambda: at, lambda: 0.0))
    registry = Registry(services, file, catalogue(), ids=Ids(1))
    load_projects(registry, file, file.stored, sets_aside=False)
    return registry


def save_answer(project: Project, number: int) -> None:
    """Make a change with an Idempotency-Key, whose answer gets the number as its id."""
    client = Caller()
    client.tracked = TrackedRequest(
        "", lambda edit: SavedAnswer(str(number), edit.now, "", 201, None, None, ""), str(number)
    )
    with client:
        project.change_settings({"name": f"change {number}"})


def openapi_description() -> str:
    """Return the description of both APIs, as a server at the default address gives it."""
    app = build_app(made_registry(), public_url="http://127.0.0.1:8080")
    text: str = Client(app).get("/openapi.json").text
    return text
