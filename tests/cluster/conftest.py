"""Fixtures of two servers that share a database."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
import requests

from payment_sandbox.serving.config import NO_TLS, Security
from payment_sandbox.serving.server import Server
from payment_sandbox_company.cluster import ClusterRegistry
from tests.support.driver import Sandbox
from tests.support.postgres import Postgres
from tests.support.servers import make_server
from tests.support.state_files import reconnect


@dataclass
class Company:
    """Several servers on one database."""

    database: Postgres
    state: str
    servers: list[Server] = field(default_factory=list)

    def start_server(self, security: Security = NO_TLS) -> Server:
        """Start another server."""
        public_url = self.servers[0].url if self.servers else None
        server = make_server(state=self.state, security=security, public_url=public_url)
        server.start()
        self.servers.append(server)
        return server

    def stop_server(self, server: Server) -> None:
        """Stop a server."""
        self.servers.remove(server)
        server.stop()

    def stop_all(self) -> None:
        """Stop all running servers."""
        for server in list(self.servers):
            self.stop_server(server)

    def client_at(self, server: Server, sandbox: Sandbox) -> Sandbox:
        """Return a client of the same project at this server."""
        client = reconnect(sandbox, server)
        client.url, client.http = server.local_url, requests.Session()
        client.http.trust_env = False
        return client

    def registry(self, number: int) -> ClusterRegistry:
        """Return the registry of a server."""
        registry = self.servers[number].registry
        assert isinstance(registry, ClusterRegistry)
        return registry

    def has_loaded(self, server: Server, sandbox: Sandbox) -> bool:
        """Return whether a server has a project in memory."""
        ids = [project.project_id for project in server.registry.loaded_projects()]
        return sandbox.project["project_id"] in ids

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Execute a statement on the database."""
        rows: list[tuple[object, ...]] = self.database.execute(statement, self.state.rpartition("/")[2])
        return rows


@pytest.fixture
def company(postgresql: Postgres) -> Iterator[Company]:
    """Two servers on a new database."""
    servers = Company(postgresql, postgresql.new_database())
    with ExitStack() as stack:
        stack.callback(servers.stop_all)
        servers.start_server()
        servers.start_server()
        yield servers


@pytest.fixture
def first(company: Company) -> Sandbox:
    """A client of a project at the first server."""
    return Sandbox(company.servers[0])


@pytest.fixture
def second(company: Company, first: Sandbox) -> Sandbox:
    """A client of the same project at the second server."""
    return company.client_at(company.servers[1], first)
