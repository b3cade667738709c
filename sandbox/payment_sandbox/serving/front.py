"""The front: aiohttp reads a request, a WSGI application answers it, and aiohttp sends the response.

It knows no routes. ``place`` decides where a call runs: on the event loop if it cannot wait, otherwise on a
thread. The iterable of a response is closed after its last byte, or when sending it fails.
"""

import asyncio
import json
import logging
import socket
import struct
import sys
from asyncio import CancelledError, Future, shield
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from enum import Enum, auto
from functools import partial
from io import BytesIO
from itertools import chain
from ssl import SSLContext
from threading import Event, Thread
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes
from wsgiref.types import WSGIApplication

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion10, HttpVersion11
from multidict import CIMultiDict

from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.operations.agenda import must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.settings import BEFORE_RESPONSE
from payment_sandbox.serving.binding import CONNECTIONS_QUEUED, url_of
from payment_sandbox.serving.config import Limits
from payment_sandbox.serving.real_loop import RealTimeLoop
from payment_sandbox.serving.threads import Threads, start
from payment_sandbox.web.auth import parse_api_key
from payment_sandbox.web.bodies import BODY_BYTES_MAX, STATE_BYTES_MAX
from payment_sandbox.web.call import CONNECTION, SAFE_METHODS, ClientConnection, ConnectionCut, variable_of
from payment_sandbox.web.error_bodies import MERCHANT_PATHS, TYPE_BY_STATUS, error_body
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, EventStream

HEAD_BYTES_MAX: Final = 16 << 10  # the limit for the request line and headers
EVENT_LOOP_BYTES_MAX: Final = 1 << 13  # parsing a larger body would block the loop
IDLE_SECONDS: Final = 75.0
STOP_SECONDS: Final = 1.5  # for calls that do not wait
STORING_MAX: Final = 8  # calls that wait for the state to be stored
ACCEPTING_ITERATIONS: Final = 3  # of the event loop, until an accepted connection is one of the server's
SERVER: Final = "payment-sandbox"
HEALTH_PATH: Final = "/health"
LINGER_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection
CONTINUE_RESPONSE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
TOO_MANY_WAIT: Final = "too many calls are waiting; retry once some of them have finished"
TOO_MANY_WATCH: Final = "too many event streams are open; close some of them"
SNAPSHOT_PATH: Final = Pattern(r"/(?:control|dashboard/([^/]+))/state/*\Z")
CONSTANT_ENVIRONMENT: Final[Mapping[str, Any]] = {
    "SCRIPT_NAME": "",
    "wsgi.version": (1, 0),
    "wsgi.multithread": True,
    "wsgi.multiprocess": False,
    "wsgi.run_once": False,
    "wsgi.input_terminated": True,
}
log = logging.getLogger(__name__)
aiohttp_log = logging.Logger("aiohttp", logging.CRITICAL + 1)  # its lines show requests, with their keys


Result = TypeVar("Result")


class Placement(Enum):
    """Where a call runs."""

    EVENT_LOOP = auto()
    THREAD = auto()
    STORING_THREAD = auto()


def place(environ: Mapping[str, Any], length: int, registry: Registry) -> Placement:
    """Decide where a call runs: on a thread, unless it cannot wait; ``length`` is that of its body."""
    path = environ["PATH_INFO"]
    if path.rstrip("/") == HEALTH_PATH:
        return Placement.EVENT_LOOP
    if not path.startswith(MERCHANT_PATHS) or "HTTP_IDEMPOTENCY_KEY" in environ:
        return Placement.THREAD
    key = parse_api_key(environ.get("HTTP_AUTHORIZATION"))
    project = registry.find(key) if key else None
    if project is None or _may_wait(project):
        return Placement.THREAD
    if project.epoch.store.is_durable and environ["REQUEST_METHOD"] not in SAFE_METHODS:
        return Placement.STORING_THREAD
    is_late = project.epoch.state.clock.running and must_catch_up(project)
    if is_late or length > EVENT_LOOP_BYTES_MAX:
        return Placement.THREAD
    return Placement.EVENT_LOOP


def _may_wait(project: Project) -> bool:
    """Whether a rehearsal, a webhook or a fault may hold up the project's answers."""
    state = project.epoch.state
    holds_up = state.faults.faults or state.scenario_faults.faults
    return project.is_rehearsed or state.settings.webhook_timing == BEFORE_RESPONSE or bool(holds_up)


class Client(ClientConnection):
    """The connection to a client of the front."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], stopping: Event) -> None:
        self.headers = headers
        self._stopping = stopping
        self.stream: EventStream | None = None

    def pause(self, seconds: float) -> None:
        """Pass real time, until the server stops."""
        self._stopping.wait(seconds)

    def watch(self, stream: EventStream) -> bool:
        """Take over an event stream."""
        self.stream = stream
        return True


def environment(http: web.BaseRequest) -> dict[str, Any]:
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


class Started(NamedTuple):
    """A response that an application has started."""

    status: int
    headers: "CIMultiDict[str]"
    pieces: Iterable[bytes]

    def close(self) -> None:
        """Release what the application holds until the response is sent."""
        close = getattr(self.pieces, "close", None)
        if close is not None:
            close()


def call_application(application: WSGIApplication, environ: dict[str, Any]) -> Started:
    """Call a WSGI application."""
    heads: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> Callable[[bytes], Any]:
        heads.append((status, headers))
        return lambda data: None

    pieces = application(environ, start_response)
    status, headers = heads[-1]
    return Started(int(status[:3]), _encode_headers(headers), pieces)


class Front:
    """Answers requests with an application."""

    def __init__(
        self, application: WSGIApplication, registry: Registry, limits: Limits, stopping: Event
    ) -> None:
        self._application = application
        self._registry = registry
        self._limits = limits
        self._stopping = stopping
        self._loop = asyncio.get_running_loop()
        self._threads = Threads("request")
        self._storing = asyncio.Semaphore(STORING_MAX)
        self._threads_used = self._streams_used = 0

    def stop(self) -> None:
        """Start no more threads; running threads end with the process."""
        self._threads.stop()

    async def answer(self, http: web.BaseRequest) -> web.StreamResponse:
        """Answer a request; aiohttp cancels this when the client disconnects."""
        try:
            if sum(map(len, chain.from_iterable(http.raw_headers))) > HEAD_BYTES_MAX:
                return _error(431, f"the request line and headers are over {HEAD_BYTES_MAX} bytes")
            environ, client = environment(http), Client(http.raw_headers, self._stopping)
            body, length = await self._read(http, environ)
            if length:
                environ["CONTENT_LENGTH"] = str(length)
            environ["wsgi.input"], environ[CONNECTION] = BytesIO(body), client
            placement = place(environ, length, self._registry)
            client.may_wait = placement is not Placement.EVENT_LOOP
            if client.may_wait and self._threads_used >= self._limits.threads:
                return _error(503, TOO_MANY_WAIT)
            return await self._send(http, await self._run(environ, placement), client)
        except TimeoutError:  # the client has sent nothing for too long
            return _reset(http)
        except CancelledError:
            raise
        except ConnectionError:  # the client has disconnected
            return _reset(http)
        except BaseException:
            log.exception("a request could not be answered")
            return _error(500, "the sandbox failed; see its log")

    async def _read(self, http: web.BaseRequest, environ: Mapping[str, Any]) -> tuple[bytes, int]:
        """Return the body and its length; the body of a longer one than allowed is not read."""
        if not http.body_exists:
            return b"", 0
        bytes_max, seconds_max = self._limits_of_body(environ)
        length = http.content_length or 0
        if length > bytes_max:
            return b"", length
        if http.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and http.version == HttpVersion11:
            assert http.transport is not None, "the client is connected"
            http.transport.write(CONTINUE_RESPONSE)
        body = bytearray(http.content.read_nowait() if http.content.is_eof() else b"")
        until_seconds = self._loop.time() + seconds_max
        while not http.content.at_eof():
            left_seconds = until_seconds - self._loop.time()
            async with asyncio.timeout(min(self._limits.silent_seconds, left_seconds)):
                body += await http.content.readany()
            if len(body) > bytes_max:
                return b"", len(body)
        return bytes(body), len(body)

    def _limits_of_body(self, environ: Mapping[str, Any]) -> tuple[int, float]:
        """Return the bytes and the seconds of a body; a snapshot of a known project may be larger."""
        path = environ["PATH_INFO"]
        snapshot = None if path.startswith(MERCHANT_PATHS) else SNAPSHOT_PATH.compiled.search(path)
        if snapshot is not None:
            key = parse_api_key(environ.get("HTTP_AUTHORIZATION")) or ""
            project = self._registry.find_by_id(snapshot[1]) if snapshot[1] else self._registry.find(key)
            if project is not None:
                return STATE_BYTES_MAX, self._limits.snapshot_seconds
        return BODY_BYTES_MAX, self._limits.body_seconds

    async def _run(self, environ: dict[str, Any], placement: Placement) -> Started:
        call = partial(call_application, self._application, environ)
        if placement is Placement.EVENT_LOOP:
            return call()
        if placement is Placement.THREAD:
            return await self._on_thread(call)
        async with self._storing:
            return await self._on_thread(call)

    async def _on_thread(self, work: Callable[[], Result]) -> Result:
        """Work on a thread at once, because calls that wait may wait for one another."""
        future: Future[Result] = self._loop.create_future()

        def run() -> None:
            try:
                settle = partial(future.set_result, work())
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(settle)

        self._threads.run(run)
        self._threads_used += 1
        future.add_done_callback(self._free_thread)
        try:
            return await shield(future)
        except CancelledError:  # the client has disconnected, and the thread goes on
            future.add_done_callback(_close_unsent)
            raise

    def _free_thread(self, _: "Future[Any]") -> None:
        self._threads_used -= 1

    async def _send(self, http: web.BaseRequest, started: Started, client: Client) -> web.StreamResponse:
        """Send a response; with Content-Length and one piece, its headers and body are one write."""
        response: web.StreamResponse = web.StreamResponse(status=started.status, headers=started.headers)
        try:
            if client.stream is not None:
                return await self._stream(http, response, client.stream)
            length = started.headers.get(hdrs.CONTENT_LENGTH)
            pieces = iter(started.pieces)
            is_whole = length is not None
            first = next(pieces, b"") if is_whole else await self._on_thread(partial(next, pieces, b""))
            if length is not None and len(first) == int(length):
                response = web.Response(status=started.status, headers=started.headers, body=first)
            _close_after_upgrade(http, response)
            await response.prepare(http)
            if not isinstance(response, web.Response) and http.method != hdrs.METH_HEAD:
                await response.write(first)
                while (piece := await self._on_thread(partial(next, pieces, None))) is not None:
                    await response.write(piece)
            await response.write_eof()
        except ConnectionCut:
            if not response.prepared:
                return _reset(http)
            if http.transport is not None:
                http.transport.close()  # what was written still arrives
        finally:
            started.close()
        return response

    async def _stream(
        self, http: web.BaseRequest, response: web.StreamResponse, stream: EventStream
    ) -> web.StreamResponse:
        """Send an event stream, until the project ends or the client disconnects."""
        if self._streams_used >= self._limits.streams:
            return _error(503, TOO_MANY_WATCH)
        self._streams_used += 1
        try:
            async with aclosing(self._events(stream)) as batches:
                first = await anext(batches, "")  # what happens once the client has the headers is watched
                await response.prepare(http)
                if http.method != hdrs.METH_HEAD:
                    await response.write(first.encode())
                    async for text in batches:
                        await response.write(text.encode())
            await response.write_eof()
        finally:
            self._streams_used -= 1
        return response

    async def _events(self, stream: EventStream) -> AsyncGenerator[str, None]:
        """Yield batches of events; a publication wakes the stream."""
        wakeup = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(wakeup.set)

        stream.events.add_listener(wake)
        try:
            with stream.watching():
                text = stream.first_batch()
                while not stream.events.is_ended:
                    yield text
                    with suppress(TimeoutError):
                        async with asyncio.timeout(HEARTBEAT_SECONDS):
                            await wakeup.wait()
                    await asyncio.sleep(stream.batch_seconds)  # events accumulate for a while
                    wakeup.clear()
                    text = stream.next_batch() or stream.heartbeat
        finally:
            stream.events.remove_listener(wake)


def _close_unsent(done: "Future[Any]") -> None:
    """Close a response that nobody receives."""
    if not done.cancelled() and done.exception() is None and isinstance(done.result(), Started):
        done.result().close()


def _close_after_upgrade(http: web.BaseRequest, response: web.StreamResponse) -> None:
    """Close the connection where aiohttp would wait for another protocol, or for the end of a body."""
    is_of_unknown_length = hdrs.CONTENT_LENGTH not in response.headers and http.version == HttpVersion10
    if is_of_unknown_length or hdrs.UPGRADE in http.headers or http.method == hdrs.METH_CONNECT:
        response.force_close()


def _reset(http: web.BaseRequest) -> web.StreamResponse:
    """Reset the TCP connection; unsent data is lost."""
    transport = http.transport
    if transport is not None and not transport.is_closing():
        raw: socket.socket | None = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_RESET)
        transport.abort()
    return web.Response()  # aiohttp cannot send it


def _error(status: int, value: str) -> web.Response:
    """Build an error of the front itself; a refused crowd frees its connections, and retries."""
    body = f"{json.dumps(error_body(status, TYPE_BY_STATUS[status], value))}\n"
    headers = {hdrs.SERVER: SERVER, **({hdrs.RETRY_AFTER: "1"} if status == 503 else {})}
    response = web.Response(text=body, status=status, headers=headers, content_type="application/json")
    response.force_close()
    return response


def _encode_headers(pairs: Iterable[tuple[str, str]]) -> "CIMultiDict[str]":
    """Encode headers, which have one character for each byte, for aiohttp, which sends UTF-8."""
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in pairs:
        headers.add(name, value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace"))
    headers[hdrs.SERVER] = SERVER
    return headers


class HttpServer:
    """Serves an application on a bound port; connections wait until ``start``."""

    def __init__(
        self, bound: socket.socket, tls: SSLContext | None = None, limits: Limits | None = None
    ) -> None:
        """With ``tls``, the port serves https, and no http."""
        self._socket = bound
        self._tls = tls
        self._limits = limits or Limits()
        host, self.port = bound.getsockname()[:2]
        self.url = url_of(host, self.port, "http" if tls is None else "https")
        self._loop: asyncio.AbstractEventLoop = RealTimeLoop()
        self._stopped = asyncio.Event()
        self._stopping = Event()  # ends the pauses of faults
        self._thread: Thread | None = None

    def start(self, application: WSGIApplication, registry: Registry) -> None:
        """Serve on a background thread; ``registry`` tells where a call runs."""
        self._thread = Thread(target=self._run, args=(application, registry), name="server", daemon=True)
        start(self._thread)

    def stop(self) -> None:
        """Accept no more connections, and close all, after a moment for the calls in progress."""
        self._stopping.set()
        if self._thread is not None:
            with suppress(RuntimeError):  # already stopped
                self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join(STOP_SECONDS + 0.5)
        else:
            self._loop.close()
        self._socket.close()

    def _run(self, application: WSGIApplication, registry: Registry) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # cancels all tasks at the end
            runner.run(self._serve(application, registry))

    async def _serve(self, application: WSGIApplication, registry: Registry) -> None:
        front = Front(application, registry, self._limits, self._stopping)
        server = web.Server(
            front.answer,
            handler_cancellation=True,
            access_log=None,
            logger=aiohttp_log,
            auto_decompress=False,
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=HEAD_BYTES_MAX,
            max_field_size=HEAD_BYTES_MAX,
        )
        runner = web.ServerRunner(server, shutdown_timeout=STOP_SECONDS)
        await runner.setup()
        await web.SockSite(runner, self._socket, ssl_context=self._tls, backlog=CONNECTIONS_QUEUED).start()
        await self._stopped.wait()
        self._loop.remove_reader(self._socket)  # accept no more; asyncio loses those that it is accepting
        for _ in range(ACCEPTING_ITERATIONS):
            await asyncio.sleep(0)
        transports = [connection.transport for connection in server.connections]
        await runner.cleanup()
        for transport in filter(None, transports):
            transport.abort()  # over TLS, closing waits for the client
        await asyncio.sleep(0)
        front.stop()
