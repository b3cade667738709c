"""The WSGI environment of a request (PEP 3333)."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from aiohttp import web

CONSTANT_ENVIRONMENT: Final[Mapping[str, Any]] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}


def environment(http: "web.BaseRequest") -> dict[str, Any]:
    """Build a request's WSGI environment, without its body."""
    target = http.raw_path if http.raw_path[0] == "/" else http.rel_url.raw_path_qs  # as proxies send it
    path, _, query = target.encode(errors="surrogateescape").partition(b"?")
    server = http.get_extra_info("sockname") or ("", 0)
    client = http.get_extra_info("peername") or ("", 0)
    environ: dict[str, Any] = {
        **CONSTANT_ENVIRONMENT,
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "REMOTE_ADDR": client[0],
        "wsgi.url_scheme": http.scheme,
        "REQUEST_METHOD": http.method,
        "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{http.version.major}.{http.version.minor}",
        "wsgi.errors": sys.stderr,
    }
    for name, value in http.raw_headers:
        variable = variable_of(name.decode("latin-1"))
        if variable is None:
            continue
        text = value.decode("latin-1")
        if variable in environ:  # the values of repeated headers are joined
            text = f"{environ[variable]}{'; ' if variable == 'HTTP_COOKIE' else ','}{text}"
        environ[variable] = text
    return environ


@lru_cache(maxsize=256)
def variable_of(header: str) -> str | None:
    """Return the WSGI variable of a header; None if the header has no variable of its own."""
    name = header.upper().replace("-", "_")
    if "_" in header or name in ("TRANSFER_ENCODING", "UPGRADE"):  # the body is decoded; nothing is upgraded
        return None
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
