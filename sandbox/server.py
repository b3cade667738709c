"""Builds the sandbox, binds it, starts and stops it; hides which HTTP server it is."""

import gc
import json
import logging
import socket
import struct
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from waitress import wasyncore
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.server import create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask

from sandbox.courier import Courier
from sandbox.pacer import Pacer
from sandbox.projects.clock import RealTime
from sandbox.projects.declared import DeclaredProject, read_all
from sandbox.projects.project import Project
from sandbox.projects.registry import FIRST_API_KEY, Registry
from sandbox.projects.snapshot import go_on
from sandbox.realtime import monotonic_seconds, wall_now
from sandbox.scenarios.default import default_scenario
from sandbox.threads import start
from sandbox.web.app import make_app
from sandbox.web.errors import TYPE_OF_STATUS, error_body

THREADS_MIN: Final = 4
THREADS_MAX: Final = 512  # blocking calls hold one each; what they wait for needs another
REQUEST_BYTES_MAX: Final = (256 << 20) + 1  # a larger one is refused before it is read
IDLE_CONNECTION_SECONDS: Final = 60
STOP_SECONDS: Final = 1.0
ORDERS_PER_FREEZE: Final = 1000

if TYPE_CHECKING:
    from sandbox.projects.state_file import StateFile

logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # the pool grows, so a queue is no news


class GrowingDispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """A pool with a thread for every request under way: a blocking call never holds up another."""

    def start_new_thread(self, target: Any, thread_no: int) -> None:
        """Add a thread to the pool."""
        start(Thread(target=target, args=(thread_no,), name=f"waitress-{thread_no}", daemon=True))

    def add_task(self, task: Any) -> None:
        """Queue a request, and make sure that a thread is free for it."""
        with self.lock:
            idle = len(self.threads) - self.stop_count - self.active_count
            wanted = len(self.threads) + 1 if idle <= len(self.queue) else 0
        if 0 < wanted <= THREADS_MAX:
            self.set_thread_count(wanted)
        super().add_task(task)


class CuttableTask(WSGITask):  # type: ignore[misc]
    """A request whose connection the application can cut off, as a broken network would."""

    def get_environment(self) -> dict[str, Any]:
        """Hand the application the scissors."""
        environment: dict[str, Any] = super().get_environment()
        environment["sandbox.cut_off"] = self._cut_off
        return environment

    def _cut_off(self) -> None:
        """Close without a farewell: what was promised and not yet sent never comes.

        Raises:
            ClientDisconnected: always; the server then gives the connection up.
        """
        abrupt = struct.pack("ii", 1, 0)
        if not self.wrote_header:
            self.channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, abrupt)
        raise ClientDisconnected


class JsonErrorTask(ErrorTask):  # type: ignore[misc]
    """Answers what is no HTTP request in the shape of all errors."""

    def execute(self) -> None:
        """Write the error and close the connection, for nobody knows where the next request begins."""
        error = self.request.error
        kind = TYPE_OF_STATUS.get(error.code, "BadRequest")
        body = json.dumps(error_body(error.code, kind, str(error.body))).encode()
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", "application/json"))
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class JsonErrorChannel(HTTPChannel):  # type: ignore[misc]
    """A connection whose errors are JSON, too."""

    task_class = CuttableTask
    error_task_class = JsonErrorTask


class PortTaken(Exception):
    """The address cannot be bound."""


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
            self._socket = _bind(host, port)
        except BaseException:
            self._let_go()
            raise
        self.port: int = self._socket.getsockname()[1]
        self.local_url = _url(host, self.port)
        self.url = (public_url or self.local_url).rstrip("/")
        self.app = make_app(
            self.registry, public_url=self.url, control_token=control_token, allow_hosts=(host, *allow_hosts)
        )
        self._map: dict[int, Any] = {}
        self._http: Any = None
        self._loop = Thread(target=self._run, name="server", daemon=True)
        self._stopping = False

    def start(self) -> None:
        """Serve, on threads of its own."""
        dispatcher = GrowingDispatcher()
        dispatcher.set_thread_count(THREADS_MIN)
        self._http = create_server(
            self.app,
            map=self._map,
            _dispatcher=dispatcher,
            sockets=[self._socket],
            max_request_body_size=REQUEST_BYTES_MAX,
            channel_timeout=IDLE_CONNECTION_SECONDS,
            connection_limit=1000,
            ident="payment-orders-sandbox",
            asyncore_use_poll=True,
        )
        self._http.channel_class = JsonErrorChannel
        self.pacer.start()
        start(self._loop)
        for project in self.registry.all():
            go_on(project)

    def stop(self) -> None:
        """Stop within two seconds; what is still under way then ends with its threads."""
        self._stopping = True
        for project in self.registry.all():
            project.feed.end()  # whoever waits for something to happen goes home
        self.courier.stop()
        for project in self.registry.all():
            project.outbox.close()
        self.pacer.stop()
        if self._http is not None:
            self._http.pull_trigger()
            self._loop.join(STOP_SECONDS)
            self._http.task_dispatcher.shutdown(cancel_pending=True, timeout=STOP_SECONDS / 2)
            wasyncore.close_all(self._map, ignore_all=True)
        self._socket.close()
        self._let_go()

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _run(self) -> None:
        while not self._stopping:
            wasyncore.poll2(1.0, self._map)

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
    from sandbox.web.openapi import document  # here, because starting up is faster without it

    app = make_app(Registry(RealTime(wall_now, monotonic_seconds)), public_url="http://127.0.0.1:8080")
    return document(app)


def _state_file(path: Path | None) -> "StateFile | None":
    if path is None:
        return None
    from sandbox.projects.state_file import StateFile  # here, because most servers have none

    return StateFile(path)


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
        bound.listen(1024)
    except (OSError, OverflowError) as error:
        bound.close()
        raise PortTaken(f"cannot listen on {host}:{port}: {error}") from error
    return bound
