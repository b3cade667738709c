"""A server per test session, a project per test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from sandbox.server import Server
from tests.driver import Sandbox
from tests.fakes.shop import Shop


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A sandbox on a free port, in this process."""
    with Server(seed=1) as running:
        yield running


@pytest.fixture(scope="session")
def http() -> Iterator[requests.Session]:
    """Connections that stay open between tests."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


@pytest.fixture
def project(server: Server, http: requests.Session) -> Callable[..., Sandbox]:
    """Makes projects with settings."""
    return lambda **settings: Sandbox(server, http, **settings)


@pytest.fixture
def sandbox(project: Callable[..., Sandbox]) -> Sandbox:
    """A fresh project in test mode, its clock frozen."""
    return project()


@pytest.fixture
def live(project: Callable[..., Sandbox]) -> Sandbox:
    """A fresh project in live mode, its clock frozen."""
    return project(mode="live")


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A merchant's shop that receives webhooks."""
    running = Shop()
    yield running
    running.close()


@pytest.fixture
def watched(project: Callable[..., Any], shop: Shop) -> Sandbox:
    """A project whose webhooks go to ``shop``."""
    made: Sandbox = project(webhook_url=shop.url)
    return made
