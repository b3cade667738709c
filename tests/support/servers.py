"""The one place where tests build servers."""

from typing import Any

from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import Server, build


def make_server(**options: Any) -> Server:
    """A server with these options of ``ServerConfig``; it serves once it is started."""
    return build(ServerConfig(**options))
