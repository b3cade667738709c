"""HTTP sessions for the sandbox's own requests."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import requests

CONNECTIONS_MAX: Final = 100


def direct_session(api_key: str | None = None) -> "requests.Session":
    """Create a session that ignores proxies and credentials from the environment and files.

    With a key it belongs to one project. Without one, many projects and threads share it, without cookies.
    """
    from http.cookiejar import DefaultCookiePolicy  # here, for a faster start without them

    import requests

    session = requests.Session()
    session.trust_env = False
    if api_key is not None:
        session.auth = (api_key, "")
    else:
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=CONNECTIONS_MAX))
    return session
