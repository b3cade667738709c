"""Two servers that share a database."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest
import requests

from payment_sandbox.projects.quotas import NO_QUOTAS, Quotas
from payment_sandbox.serving.config import NO_TLS, Security
from payment_sandbox.serving.server import Server
from payment_sandbox_company.cluster import ClusterRegistry
from tests.support.driver import Sandbox
from tests.support.postgres import Postgres
from tests.support.servers import make_server


@dataclass
class Company:
    """Servers on one database."""

    database: Postgres
    state: str
    servers: list[Server] = field(default_factory=list)

    def begin(self, security: Security = NO_TLS, quotas: Quotas = NO_QUOTAS) -> Server:
        """Start another server."""
        public_url = self.servers[0].url if self.servers else None
        server = make_server(state=self.state, security=security, public_url=public_url, quotas=quotas)
        server.start()
        self.servers.append(server)
        return server

    def end(self, server: Server) -> None:
        """Stop a server."""
        self.servers.remove(server)
        server.stop()

    def end_all(self) -> None:
        """Stop those that still run."""
        for server in list(self.servers):
            self.end(server)

    def at(self, server: Server, sandbox: Sandbox) -> Sandbox:
        """The same project, asked for at this server."""
        other = object.__new__(Sandbox)
        other.__dict__.update(sandbox.__dict__)
        other.server, other.url, other.http = server, server.local_url, requests.Session()
        other.http.trust_env = False
        return other

    def registry(self, number: int) -> ClusterRegistry:
        """The projects as a server knows them."""
        registry = self.servers[number].registry
        assert isinstance(registry, ClusterRegistry)
        return registry

    def has(self, server: Server, sandbox: Sandbox) -> bool:
        """Whether a server has a project in memory."""
        ids = [project.project_id for project in server.registry.loaded_projects()]
        return sandbox.project["project_id"] in ids

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Ask the database itself."""
        rows: list[tuple[object, ...]] = self.database.execute(statement, self.state.rpartition("/")[2])
        return rows


@pytest.fixture
def company(postgresql: Postgres) -> Iterator[Company]:
    """A database, and two servers."""
    made = Company(postgresql, postgresql.new_database())
    with ExitStack() as ends:
        ends.callback(made.end_all)
        made.begin()
        made.begin()
        yield made


@pytest.fixture
def first(company: Company) -> Sandbox:
    """A project, through the first server."""
    return Sandbox(company.servers[0])


@pytest.fixture
def second(company: Company, first: Sandbox) -> Sandbox:
    """The same project, through the second one."""
    return company.at(company.servers[1], first)
