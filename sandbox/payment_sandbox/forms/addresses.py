"""Addresses that merchants send."""

from typing import Final
from urllib.parse import urlsplit

URL_LENGTH_MAX: Final = 2048


def url_problem(text: str) -> str | None:
    """Why a text is not an http or https address; None when it is one."""
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
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        return "its host is not a valid host name"
    return None
