"""HTTP sessions for the sandbox's own requests."""

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ssl import SSLContext

    import requests

CONNECTIONS_MAX: Final = 100


class Trust(NamedTuple):
    """Whom a session trusts besides those whom the system trusts: the certificates of a file, or anybody."""

    tls: "SSLContext"
    file: Path | None = None

    @classmethod
    def of(cls, file: Path | None, *, insecure: bool = False) -> "Trust":
        """Trust the certificates of a file, or anybody.

        Raises:
            CertificateRefused: the file has no certificate.
        """
        from payment_sandbox.serving.tls import trusting_context  # here, because most sessions need no TLS

        return cls(trusting_context(file, insecure=insecure), None if insecure else file)


def trust(session: "requests.Session", trust: Trust, adapter: "requests.adapters.HTTPAdapter") -> None:
    """Let a session trust more, with the connections of this adapter."""
    if trust.file is None:
        import urllib3

        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # that is what was asked for
    adapter.init_poolmanager(CONNECTIONS_MAX, CONNECTIONS_MAX, ssl_context=trust.tls)
    session.mount("https://", adapter)
    session.verify = False if trust.file is None else str(trust.file)  # requests adds it to the context


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
