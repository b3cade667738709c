"""Calls the application for each request: on the event loop if it cannot wait, else on a thread."""

import logging
from asyncio import AbstractEventLoop, Future, Task, timeout
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from payment_sandbox.serving.connection import Connection, Limits, Response
from payment_sandbox.serving.streams import Watchers
from payment_sandbox.serving.threads import Threads
from payment_sandbox.serving.turns import READING_MAX, RUNNING_MAX, Job, Lane, Turn, Waiting
from payment_sandbox.serving.wsgi import CutOff, Request, Run, Site, environment, error
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.event_stream import STREAM, EventStream
from payment_sandbox.web.paths import takes_snapshot
from payment_sandbox.web.placing import (
    AT_ONCE_BYTES_MAX,
    BEGIN_WAITING,
    ON_EVENT_LOOP,
    TOO_MANY_WAIT,
    Placement,
)

STREAM_SECONDS_MAX: Final = 600.0  # for a whole response that is sent piece by piece

log = logging.getLogger(__name__)


class Gateway:
    """Has a site answer the requests of all connections."""

    def __init__(self, site: Site, loop: AbstractEventLoop, lost: Callable[[], None], limits: Limits) -> None:
        """``lost`` is called when a connection has ended."""
        self.connections: set[Connection] = set()
        self.limits = limits
        self.lost = lost
        self._site = site
        self._loop = loop
        self._threads = Threads("request")
        waiting = Waiting(limits.waiting)
        self._working = Lane(loop, self._threads, RUNNING_MAX, waiting)
        self._reading = Lane(loop, self._threads, READING_MAX, waiting)
        self._watching = Waiting(limits.waiting)
        self._watchers = Watchers(loop, limits.send_seconds)
        self._tasks: set[Task[None]] = set()
        self._snapshots_bytes = 0

    def stop(self) -> None:
        """Start no more threads; those that still run end with the process."""
        self._threads.stop()

    # Bodies, within limits that depend on the path

    def keep(self, path: bytes, before: int, length: int) -> bool:
        """Whether to keep a piece of a body; all snapshots together have a limit, other bodies each."""
        if not takes_snapshot(path.decode("latin-1")):
            return before + length <= BODY_BYTES_MAX
        if self._snapshots_bytes + length > self.limits.snapshots_bytes:
            return False
        self._snapshots_bytes += length
        return True

    def release(self, path: bytes, length: int) -> None:
        """Note that this much of a body is needed no longer."""
        if length and takes_snapshot(path.decode("latin-1")):
            self._snapshots_bytes -= length

    # Requests

    def serve(self, request: Request, response: Response) -> None:
        """Answer a request; where it runs is decided here, once."""
        is_whole = len(request.body) == request.length
        if not is_whole and takes_snapshot(request.path.decode("latin-1")):
            busy = "too many snapshots are being received; try again later"
            response.send(error(503, busy, retry=True))
            return
        environ = environment(request, response.peers)
        try:
            placement = self._site.place(environ, request.length)
        except Exception:
            log.exception("a request could not be placed")
            placement = Placement(on_thread=False)
        if placement.on_thread:
            lane = self._reading if request.length > AT_ONCE_BYTES_MAX else self._working
            lane.run(placement.share, self._job(environ, placement.share, response))
        else:
            environ[ON_EVENT_LOOP] = True
            self._answer(Run(self._site, environ), placement.share, response)

    def _job(self, environ: dict[str, Any], share: str, response: Response) -> Job:
        def job(turn: Turn) -> None:
            environ[BEGIN_WAITING] = turn.begin_waiting
            run = Run(self._site, environ)
            whole = run.whole() if run.is_short else None
            self._on_loop(lambda: self._answer(run, share, response, whole))

        return job

    def _answer(self, run: Run, share: str, response: Response, whole: Any = None) -> None:
        """Send what the application has answered."""
        if STREAM in run.environ:
            self._start(self._watch(run, share, response))
        elif run.is_short:
            self._deliver(whole or run.whole(), response)
        else:
            self._start(self._send_pieces(run, share, response))

    def _deliver(self, answer: Any, response: Response) -> None:
        try:
            response.send(answer)
        except Exception:  # such as a header that HTTP does not allow
            log.exception("a response could not be sent")
            response.cut()
        finally:
            answer.close()

    async def _watch(self, run: Run, share: str, response: Response) -> None:
        """Send a stream of events."""
        stream: EventStream = run.environ[STREAM]
        try:
            with self._watching.counted(share) as may_watch:
                if may_watch and run.head is not None:
                    response.begin(run.head)
                    await self._watchers.serve(stream, response)
                else:
                    response.send(error(503, TOO_MANY_WAIT, retry=True))
        finally:
            run.close()

    async def _send_pieces(self, run: Run, share: str, response: Response) -> None:
        """Send a response of unknown length; a client that reads slowly holds no thread."""
        assert run.head is not None, "a response without a head is an error, and short"
        pieces = iter(run.pieces)
        try:
            async with timeout(STREAM_SECONDS_MAX):
                piece = await self._next_piece(pieces, share)
                response.begin(run.head)
                while piece is not None and not response.is_closed:
                    response.send_piece(piece)
                    async with timeout(self.limits.send_seconds):
                        await response.drained()
                    piece = await self._next_piece(pieces, share)
            response.end()
        except CutOff:
            response.cut() if response.has_begun else response.reset()
        except TimeoutError:  # nobody reads it
            response.reset()
        except Exception:
            log.exception("a response could not be sent to its end")
            response.cut()
        finally:
            run.close()

    async def _next_piece(self, pieces: Any, share: str) -> bytes | None:
        """The next piece of a response, made on a thread; None at its end."""
        made: Future[bytes | None] = self._loop.create_future()

        def job(turn: Turn) -> None:
            try:
                piece = next(pieces, None)
            except BaseException as failed:
                self._on_loop(partial(_settle, made, None, failed))
            else:
                self._on_loop(partial(_settle, made, piece))

        self._working.run(share, job)
        return await made

    def _start(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_loop(self, work: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:  # the loop has stopped
            log.debug("a response came after the server had stopped")


def _settle(made: "Future[bytes | None]", piece: bytes | None, failed: BaseException | None = None) -> None:
    if made.done():
        return
    if failed is not None:
        made.set_exception(failed)
    else:
        made.set_result(piece)
