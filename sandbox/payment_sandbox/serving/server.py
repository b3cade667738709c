"""Builds the sandbox, binds it, starts and stops it."""

import gc
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.default import default_scenario
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.http import HttpServer
from payment_sandbox.serving.pacer import Pacer
from payment_sandbox.serving.realtime import monotonic_seconds, wall_now
from payment_sandbox.storage.declared import DeclaredProject, read_all
from payment_sandbox.storage.registry import FIRST_API_KEY, Registry
from payment_sandbox.storage.snapshot import go_on
from payment_sandbox.web.app import make_app

ORDERS_PER_FREEZE: Final = 1000

if TYPE_CHECKING:
    from payment_sandbox.storage.sqlite import StateFile


class Start(TypedDict, total=False):
    """What a server's projects begin with."""

    seed: int | None
    clock: str
    scenario_folders: Sequence[Path]
    scenario: str | None  # of the first project
    project_files: Sequence[Path]
    state: Path | None


class Server:
    """One sandbox on one port, in this process; ``port`` 0 takes any free one."""

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        public_url: str | None = None,
        control_token: str | None = None,
        allow_hosts: Sequence[str] = (),
        freeze_memory: bool = False,
        **start: Unpack[Start],
    ) -> None:
        """Bind and build; nothing is served before ``start``.

        Raises:
            PortTaken: the address is in use, or not this host's.
            Invalid: ``clock`` is none, a file of scenarios or projects is wrong, a scenario is not there.
            StateRefused: the ``state`` file cannot be used.
        """
        self.courier = Courier()
        self.pacer = Pacer()
        self._orders = count(1)
        self._freeze_memory = freeze_memory
        self.file = _state_file(start.get("state"))
        try:
            self._have_projects(start)
            self._http = HttpServer(host, port)
        except BaseException:
            self._let_go()
            raise
        self.port, self.local_url = self._http.port, self._http.url
        self.url = (public_url or self.local_url).rstrip("/")
        self.app = make_app(
            self.registry, public_url=self.url, control_token=control_token, allow_hosts=(host, *allow_hosts)
        )

    def start(self) -> None:
        """Serve, on threads of its own."""
        self._http.start(self.app)
        self.pacer.start()
        for project in self.registry.all():
            go_on(project)

    def stop(self) -> None:
        """Stop within two seconds; what is still under way then ends with its threads."""
        for project in self.registry.all():
            project.feed.end()  # whoever waits for something to happen goes home
        self.courier.stop()
        for project in self.registry.all():
            project.outbox.close()
        self.pacer.stop()
        self._http.stop()
        self._let_go()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _have_projects(self, start: "Start") -> None:
        """Those of the state file, those declared, and the one that is always there (CTL-04)."""
        self.registry = registry = Registry(
            RealTime(wall_now, monotonic_seconds),
            seed=start.get("seed"),
            clock=start.get("clock", "running"),
            scenario_folders=start.get("scenario_folders", ()),
            state_file=self.file,
        )
        for kept in registry.all():
            self._attach(kept)
        registry.on_created = self._attach
        name = start.get("scenario")
        scenario = registry.catalogue.find(name) if name is not None else None
        declared = read_all(start.get("project_files", ()), registry.catalogue)
        for project in (*declared, DeclaredProject(FIRST_API_KEY, {"name": "sandbox"}, scenario)):
            if not registry.is_known(project.api_key):
                made, _ = registry.create(project.settings, api_key=project.api_key)
                is_first = project.api_key == FIRST_API_KEY
                made.activate(project.scenario or (scenario if is_first else None) or default_scenario())

    def _let_go(self) -> None:
        if self.file is not None:
            self.file.close()

    def _attach(self, project: Project) -> None:
        self.courier.attach(project)
        self.pacer.attach(project)
        if self._freeze_memory:
            project.on_order = self._count_order

    def _count_order(self) -> None:
        """Let the collector forget settled orders: with 100,000 it would stall everybody by half a second."""
        if next(self._orders) % ORDERS_PER_FREEZE == 0:
            gc.freeze()


def description() -> str:
    """The description of both APIs, OpenAPI 3.1 as JSON text."""
    from payment_sandbox.web.openapi import document  # here, because starting up is faster without it

    app = make_app(Registry(RealTime(wall_now, monotonic_seconds)), public_url="http://127.0.0.1:8080")
    return document(app)


def _state_file(path: Path | None) -> "StateFile | None":
    if path is None:
        return None
    from payment_sandbox.storage.sqlite import StateFile  # here, because most servers have none

    return StateFile(path)
