"""How the sandbox itself speaks HTTP: to its own server, and to what is on the same machine."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import requests

CONNECTIONS_MAX: Final = 100


def direct_session(api_key: str | None = None) -> "requests.Session":
    """A session that asks no proxy and reads no credentials from files.

    With a key it is one project's. Without one it is for many projects and threads, and keeps no cookie.
    """
    from http.cookiejar import DefaultCookiePolicy  # here, because all that starts without them starts faster

    import requests

    session = requests.Session()
    session.trust_env = False
    if api_key is not None:
        session.auth = (api_key, "")
    else:
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=CONNECTIONS_MAX))
    return session
