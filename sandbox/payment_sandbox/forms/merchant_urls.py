"""URLs from merchants: an accepted URL works both in browsers and in the HTTP client."""

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final
from urllib.parse import urlsplit

import idna

from payment_sandbox.kernel.patterns import Pattern

URL_LENGTH_MAX: Final = 2048
HOST_LENGTH_MAX: Final = 253

_LABEL_PATTERN: Final = Pattern("[A-Za-z0-9_-]{1,63}")
_NUMERIC_PATTERN: Final = Pattern(
    r"\d+|0[xX][0-9a-fA-F]*"
)  # browsers parse a host with such a last label as an IPv4 address


@lru_cache(maxsize=256)
def url_problem(text: str) -> str | None:
    """Return the reason why a text is not an http or https URL; None for a valid URL."""
    if len(text) > URL_LENGTH_MAX:
        return f"it is longer than {URL_LENGTH_MAX} characters"
    if not text.isprintable() or " " in text or "\\" in text:
        return "it contains a space, a backslash or a control character"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "its scheme is not http or https"
    if not parts.hostname:
        return "it has no host"
    if "@" in parts.netloc:
        return "it contains credentials"
    if not _is_host(parts.hostname, has_brackets="[" in parts.netloc):
        return "its host is not a valid host name"
    return None


def _is_host(host: str, *, has_brackets: bool) -> bool:
    """Whether browsers and HTTP clients accept this host: a name, ASCII or Unicode, or an IP address."""
    try:
        if has_brackets:
            return bool(IPv6Address(host)) and "%" not in host
        name = _encode_idna(host) if not host.isascii() or "xn--" in host.lower() else host
        labels = name.removesuffix(".").split(".")
        if _NUMERIC_PATTERN.fullmatch(labels[-1]) is not None:
            return bool(IPv4Address(name))
    except (AddressValueError, UnicodeError):
        return False
    return len(name) <= HOST_LENGTH_MAX and all(map(_LABEL_PATTERN.fullmatch, labels))


def _encode_idna(host: str) -> str:
    """Encode a host name as DNS clients do.

    Raises:
        UnicodeError: the name has no valid encoding.
    """
    name = idna.encode(host.lower(), strict=True, std3_rules=True).decode()  # as urllib3 does
    idna.decode(name)
    return name
