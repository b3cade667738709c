"""Network errors as sentences: what happened and where, instead of a library's nested exceptions."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from http.client import RemoteDisconnected
from typing import Any, Final
from urllib.parse import urlsplit

from payment_sandbox.serving.binding import port_of

NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNKNOWN_PROTOCOL")
CLOSED: Final = "{address} closed the connection without a response"
SENTENCES: Final[Sequence[tuple[type[Any], str]]] = (  # the first that fits
    (ConnectionRefusedError, "connection refused: nothing listens on {address}"),
    (socket.gaierror, "the host name {host} cannot be resolved"),
    (ssl.SSLCertVerificationError, "the TLS certificate of {address} is not trusted: {cause.verify_message}"),
    (ssl.SSLError, "TLS with {address} failed: {cause.reason}"),
    (RemoteDisconnected, CLOSED),
    (ConnectionResetError, CLOSED),
    (ConnectionAbortedError, CLOSED),
    (BrokenPipeError, CLOSED),
    (TimeoutError, "{address} did not answer in time"),
    (OSError, "{address} cannot be reached: {cause.strerror}"),
)


def trouble(error: BaseException, url: str) -> str:
    """What kept a request to this URL from being answered, in a sentence that names the address."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError) and cause.reason in NO_TLS:
            return f"{address_of(url)} speaks plain http, but the address says https"
        for kind, sentence in SENTENCES:
            if isinstance(cause, kind) and (kind is not OSError or cause.strerror):
                return sentence.format(address=address_of(url), host=urlsplit(url).hostname, cause=cause)
    return f"{type(error).__name__}: {error}"


def address_of(url: str) -> str:
    """The host and port of a URL."""
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{host}:{port_of(parts)}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The errors behind an error, the innermost first; requests and urllib3 keep them in several places."""
    found: list[BaseException] = []
    left: list[object] = [error]
    while left:
        each = left.pop()
        if isinstance(each, BaseException) and all(each is not other for other in found):
            found.append(each)
            left += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
    yield from reversed(found)
