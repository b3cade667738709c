"""Runs the application: on the event loop if a call cannot block, otherwise on a thread."""

import logging
from asyncio import AbstractEventLoop, timeout
from collections.abc import Callable, Iterator
from typing import Final

from aiohttp import web

from payment_sandbox.serving.bodies import Bodies, Body
from payment_sandbox.serving.connection import Connection, Limits
from payment_sandbox.serving.replies import PendingReply
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.turns import FairPool, Turn, Turns, WaitCounter
from payment_sandbox.serving.watchers import Watchers
from payment_sandbox.serving.wsgi import Application, Request, Run, environment, error
from payment_sandbox.web.addresses import accepts_snapshot
from payment_sandbox.web.call import TOO_MANY_WAIT, Call, ClientConnection, ConnectionCut
from payment_sandbox.web.event_stream import EventStream
from payment_sandbox.web.site import SharedCluster
from payment_sandbox.web.statistics import Statistics

RUNNING_CALLS_MAX: Final = 2  # more threads would only slow down one another and the event loop
RUNNING_CALLS_MAX_SHARED: Final = 12  # with a database, threads are mostly waiting for it
LARGE_BYTES: Final = 1 << 16
READING_MAX: Final = 1  # the number of concurrent calls with large bodies; parsing blocks the interpreter
STREAM_SECONDS_MAX: Final = 600.0  # the longest time to stream one response
SNAPSHOTS_BUSY: Final = "too many snapshots are being received; try again later"

log = logging.getLogger(__name__)


class TurnConnection(ClientConnection):
    """The client connection of a call that may run on a thread."""

    __slots__ = ("turn",)

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        super().__init__(headers)
        self.turn: Turn | None = None

    def begin_waiting(self) -> bool:
        """Let another call run while this call waits."""
        return self.turn is None or self.turn.begin_waiting()


class Gateway:
    """Uses an application to answer the requests on all connections."""

    def __init__(
        self,
        application: Application,
        loop: AbstractEventLoop,
        on_connection_end: Callable[[], None],
        limits: Limits,
        statistics: Statistics,
        cluster: SharedCluster | None,
    ) -> None:
        """Create a gateway; ``on_connection_end`` is called at the end of each connection."""
        self.connections: set[Connection] = set()
        self.is_full = False
        self.limits = limits
        self.on_connection_end = on_connection_end
        self.count = statistics.count_call
        self.receive: Callable[[bytes], Body] = Bodies(limits.snapshots_bytes).receive
        self._application = application
        self._threads = Threads("request")
        waiting = WaitCounter(limits.waiting)
        running_max = RUNNING_CALLS_MAX if cluster is None else RUNNING_CALLS_MAX_SHARED
        self._working = FairPool(loop, self._threads, running_max, waiting)
        self._reading = FairPool(loop, self._threads, READING_MAX, waiting)
        self._turns = Turns(loop)
        self._watching = WaitCounter(limits.watching)
        self._watchers = Watchers(loop, limits.send_seconds)
        self._cluster = cluster

    @property
    def closes_connections(self) -> bool:
        """Whether to close connections after responses: the server is full or draining."""
        return self.is_full or (self._cluster is not None and self._cluster.is_draining)

    def stop(self) -> None:
        """Start no more threads; running threads end with the process."""
        self._threads.stop()

    async def answer(self, request: Request, reply: PendingReply) -> web.StreamResponse:
        """Answer a request."""
        if len(request.body) != request.length and accepts_snapshot(request.path.decode("latin-1")):
            return await reply.send_response(error(503, SNAPSHOTS_BUSY, retry=True))
        client = TurnConnection(request.headers)
        try:
            call = self._application.place(environment(request, reply.peers), request.length, client)
        except Exception:
            log.exception("a request could not be routed")
            return await reply.send_response(error(500, "the sandbox failed; see its log"))
        return await self.respond(await self.run(call, client, request.length), reply)

    async def run(self, call: Call, client: TurnConnection, length: int) -> Run:
        """Run a call in its project's turn; ``length`` is the length of its body."""
        if not call.on_thread:
            client.may_wait = False
            if not self._turns.take():
                await self._turns.wait(call.share)
            return Run(self._application, call)

        def run(turn: Turn) -> Run:
            client.turn = turn
            return Run(self._application, call)

        pool = self._reading if length > LARGE_BYTES else self._working
        return await pool.run(call.share, run)

    async def respond(self, run: Run, reply: PendingReply) -> web.StreamResponse:
        """Send the application's response without a thread, then end the call."""
        if run.answer is not None and run.call.stream is None:
            try:
                async with timeout(self.limits.send_seconds):
                    return await reply.send_response(run.answer)
            except TimeoutError:  # the client is not reading
                return reply.reset()
            finally:
                run.close()
        try:
            stream = run.call.stream
            sending = self._send_pieces(run, reply) if stream is None else self._watch(run, stream, reply)
            response = await sending
        except Exception:
            run.close()
            raise
        run.close()  # skipped on cancellation, when a thread may still be producing the next piece
        return response

    async def _watch(self, run: Run, stream: EventStream, reply: PendingReply) -> web.StreamResponse:
        """Send an event stream."""
        with self._watching.count_call(run.call.share) as may_watch:
            if not may_watch or run.head is None:
                return await reply.send_response(error(503, TOO_MANY_WAIT, retry=True))
            await reply.begin(run.head)
            return await self._watchers.serve(stream, reply)

    async def _send_pieces(self, run: Run, reply: PendingReply) -> web.StreamResponse:
        """Send a response of unknown length."""
        assert run.head is not None, "a response without a head is an error, and short"
        pieces, share = iter(run.pieces), run.call.share
        try:
            async with timeout(STREAM_SECONDS_MAX):
                piece = await self._next_piece(pieces, share)
                await reply.begin(run.head)
                while piece is not None and not reply.is_closed:
                    async with timeout(self.limits.send_seconds):
                        await reply.send(piece)
                    piece = await self._next_piece(pieces, share)
            return await reply.end()
        except ConnectionCut:
            return reply.cut() if reply.has_begun else reply.reset()
        except TimeoutError:  # the client is not reading
            return reply.reset()
        except ConnectionError:
            return reply.cut()
        except Exception:
            log.exception("a response failed midway")
            return reply.cut()

    async def _next_piece(self, pieces: Iterator[bytes], share: str) -> bytes | None:
        """Produce the next piece of a response on a thread; return None at the end."""
        return await self._working.run(share, lambda turn: next(pieces, None))
