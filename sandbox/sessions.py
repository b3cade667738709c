"""How the sandbox itself speaks HTTP: to its own server, and to what is on the same machine."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import requests


def direct_session(api_key: str | None = None) -> "requests.Session":
    """A session that asks no proxy and reads no credentials from files, with a project's key set."""
    import requests  # here, because all that starts without it starts faster

    session = requests.Session()
    session.trust_env = False
    if api_key is not None:
        session.auth = (api_key, "")
    return session
