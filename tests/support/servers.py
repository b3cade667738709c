"""Creation of servers for tests."""

from typing import Any

from payment_sandbox.app import build
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server


def make_server(**options: Any) -> Server:
    """Create a server with these options of ``ServerConfig``; start it to serve requests."""
    return build(ServerConfig(**options))
