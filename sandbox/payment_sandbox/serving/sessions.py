"""HTTP sessions for the sandbox's own requests."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import certifi

from payment_sandbox.extensions import metadata
from payment_sandbox.loading import LazyModule
from payment_sandbox.serving.binding import port_of

if TYPE_CHECKING:
    from http import cookiejar

    import requests as requests
else:  # 37 of the milliseconds of serve, which loads them for its first webhook
    cookiejar, requests = LazyModule("http.cookiejar"), LazyModule("requests")

CONNECTIONS_MAX: Final = 100


class CertificateRefused(Exception):
    """A certificate or the folder of the sandbox's own authority cannot be used."""


@cache
def trusting_context(more: Path | None = None, *, insecure: bool = False) -> ssl.SSLContext:
    """Create a client context that trusts the system's certificates and a file's, or any certificate.

    Raises:
        CertificateRefused: the file has no certificate.
    """
    context = ssl.create_default_context()
    if metadata.version("urllib3").startswith("1."):
        context.check_hostname = False  # urllib3 checks IP addresses itself
    # Python 3.13 refuses the certificates of openssl req -x509, which lack key identifiers by default
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_verify_locations(certifi.where())
    if more is not None:
        try:
            context.load_verify_locations(more)
        except FileNotFoundError as error:
            raise CertificateRefused(f"there is no file {more}") from error
        except (OSError, ssl.SSLError) as error:
            raise CertificateRefused(f"{more} has no certificate in PEM format") from error
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


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
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    address = f"{host}:{port_of(parts)}"
    for cause in causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason in HTTP_REASONS:
            return f"{address} serves plain http, but the address says https"
        for kind, sentence in SENTENCES:
            if isinstance(cause, kind) and (kind is not OSError or cause.strerror):
                return sentence.format(address=address, host=parts.hostname, cause=cause)
    return f"{type(error).__name__}: {error}"


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
