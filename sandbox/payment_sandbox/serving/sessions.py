"""HTTP sessions for the sandbox's own requests."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from payment_sandbox.loading import lazy
from payment_sandbox.serving.binding import port_of

if TYPE_CHECKING:
    from http import cookiejar

    import requests
else:
    cookiejar = lazy("http.cookiejar")
    requests = lazy("requests")

CONNECTIONS_MAX: Final = 100


def direct_session(api_key: str | None = None) -> "requests.Session":
    """Create a session that ignores proxies and credentials from the environment and files.

    With a key, the session belongs to one project. Without a key, it is shared and has no cookies.
    """
    session = requests.Session()
    session.trust_env = False
    if api_key is not None:
        session.auth = (api_key, "")
    else:
        session.cookies.set_policy(cookiejar.DefaultCookiePolicy(allowed_domains=()))
        session.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=CONNECTIONS_MAX))
    return session


HTTP_REASONS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
REFUSED: Final = "connection refused"
NOT_TRUSTED: Final = "is not trusted: "
SENTENCES: Final[Sequence[tuple[type[Any], str]]] = (  # the first match applies
    (ConnectionRefusedError, f"{REFUSED}: no server listens on {{address}}"),
    (socket.gaierror, "the host name {host} cannot be resolved"),
    (
        ssl.SSLCertVerificationError,
        f"the TLS certificate of {{address}} {NOT_TRUSTED}{{cause.verify_message}}",
    ),
    (ssl.SSLError, "TLS with {address} failed: {cause.reason}"),
    (ConnectionError, "{address} closed the connection without a response"),
    (TimeoutError, "{address} did not answer in time"),
    (OSError, "{address} cannot be reached: {cause.strerror}"),
)


def describe_failure(error: BaseException, url: str) -> str:
    """Describe the failure of a request to this URL in a sentence with the address."""
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason in HTTP_REASONS:
            return f"{address_of(url)} serves plain http, but the address says https"
        for kind, sentence in SENTENCES:
            if isinstance(cause, kind) and (kind is not OSError or cause.strerror):
                return sentence.format(address=address_of(url), host=urlsplit(url).hostname, cause=cause)
    return f"{type(error).__name__}: {error}"


def address_of(url: str) -> str:
    """Return the host and port of a URL."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{port_of(parts)}"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the causes of an error, innermost first; requests and urllib3 set various attributes."""
    causes: list[BaseException] = []
    remaining: list[object] = [error]
    while remaining:
        each = remaining.pop()
        if isinstance(each, BaseException) and all(each is not other for other in causes):
            causes.append(each)
            remaining += each.exceptions[:1] if isinstance(each, BaseExceptionGroup) else ()
            remaining += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
    yield from reversed(causes)
