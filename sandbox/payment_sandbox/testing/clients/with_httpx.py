"""A transport for calls to the sandbox without sockets, for clients of httpx and its successor httpx2.

Both libraries have the same interface, and accept any object with the methods of a transport.
"""

import sys
from typing import Any
from urllib.parse import urlsplit

from payment_sandbox.serving.server import Server
from payment_sandbox.testing.clients.in_process import CutOff, InProcess, ResponseTimeout
from payment_sandbox.testing.clients.memory_socket import Target
from payment_sandbox.testing.loops import run_blocking
from payment_sandbox.testing.shops.tracebacks import CALLING_FRAMES, stack_frames
from payment_sandbox.web.answers.page_urls import is_stream
from payment_sandbox.web.auth import parse_api_key


class HttpxTransport:
    """A transport for ``httpx.Client(transport=...)`` and ``httpx.AsyncClient(transport=...)``.

    Streams and requests to other servers use sockets. If ``server`` is None, because the sandbox runs in
    another process, all requests use sockets.
    """

    def __init__(self, server: Server | None) -> None:
        self._in_process = InProcess(server) if server is not None else None
        self._sockets: Any = None
        self._async_sockets: Any = None

    def handle_request(self, request: Any) -> Any:
        """Handle one request on this thread."""
        if self._in_process is None or not _is_in_process(self._in_process, request):
            self._sockets = self._sockets or library_of(request).HTTPTransport()
            return self._sockets.handle_request(request)
        return answer_request(self._in_process, request, request.read())

    async def handle_async_request(self, request: Any) -> Any:
        """Handle one request on another thread, without blocking the event loop."""
        if self._in_process is None or not _is_in_process(self._in_process, request):
            self._async_sockets = self._async_sockets or library_of(request).AsyncHTTPTransport()
            return await self._async_sockets.handle_async_request(request)
        body = await request.aread()
        token = CALLING_FRAMES.set(tuple(stack_frames()))
        try:
            return await run_blocking(answer_request, self._in_process, request, body)
        finally:
            CALLING_FRAMES.reset(token)

    def close(self) -> None:
        """Close the connections to other servers."""
        if self._sockets is not None:
            self._sockets.close()
            self._sockets = None

    async def aclose(self) -> None:
        """Close the connections to other servers."""
        if self._async_sockets is not None:
            await self._async_sockets.aclose()
            self._async_sockets = None

    def __enter__(self) -> "HttpxTransport":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> "HttpxTransport":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def library_of(request: Any) -> Any:
    """Return the library that created a request, httpx or httpx2."""
    return sys.modules[type(request).__module__.partition(".")[0]]


def _is_in_process(in_process: InProcess, request: Any) -> bool:
    url = str(request.url)
    return in_process.is_addressed(url) and not is_stream(urlsplit(url).path)


def answer_request(target: Target, request: Any, body: bytes) -> Any:
    """Send a request to the sandbox; on errors, raise the exceptions of the request's library."""
    library, url = library_of(request), str(request.url)
    if is_stream(urlsplit(url).path):
        raise library.UnsupportedProtocol(f"{url} is a stream, which needs a socket", request=request)
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
    limit_seconds = request.extensions.get("timeout", {}).get("read")
    key = parse_api_key(request.headers.get("Authorization")) or ""
    try:
        answer = target.send(request.method, url, headers, body, key, limit_seconds)
    except ResponseTimeout as late:
        raise library.ReadTimeout(str(late), request=request) from None
    except CutOff as cut:
        if cut.partial is None:
            raise library.ReadError("a fault cut the connection", request=request) from None
        raise library.RemoteProtocolError("a fault cut the response off", request=request) from None
    return library.Response(
        answer.status_code,
        headers=list(answer.headers),
        content=answer.content,
        extensions={"reason_phrase": answer.reason_phrase.encode(), "http_version": b"HTTP/1.1"},
    )
