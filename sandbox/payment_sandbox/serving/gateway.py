"""Calls the application for each request: on the event loop if it cannot wait, else on a thread."""

import logging
from asyncio import AbstractEventLoop, CancelledError, Event, Task, timeout
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from payment_sandbox.projects.events import Events
from payment_sandbox.serving.connection import Connection, Limits, Response
from payment_sandbox.serving.threads import Threads, on_thread
from payment_sandbox.serving.wsgi import CutOff, Request, Run, Site, environment, error
from payment_sandbox.web.addresses import takes_snapshot
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.event_stream import HEARTBEAT_SECONDS, STREAM, EventStream
from payment_sandbox.web.placing import (
    BEGIN_WAITING,
    ON_EVENT_LOOP,
    TOO_MANY_WAIT,
    Placement,
)
from payment_sandbox.web.statistics import Statistics

if TYPE_CHECKING:
    from payment_sandbox.serving.cluster import Cluster

RUNNING_MAX: Final = 2  # more would only slow each other, and the event loop, down
RUNNING_MAX_SHARED: Final = 12  # where each waits for the database most of the time
LARGE_BYTES: Final = 1 << 16
READING_MAX: Final = 1  # of large bodies: the interpreter does nothing else while it parses one

Job = Callable[["Turn"], None]
Item = TypeVar("Item")


class Waiting:
    """How many calls wait, or watch: ``most`` in all, and two thirds of them for each project."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._by_share: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, share: str) -> bool:
        """Count one more; False if too many wait already."""
        with self._lock:
            if self._count >= self._most or self._by_share[share] >= self._most * 2 // 3:
                return False
            self._count += 1
            self._by_share[share] += 1
            return True

    def end(self, share: str) -> None:
        """Count one less."""
        with self._lock:
            self._count -= 1
            self._by_share[share] -= 1
            if not self._by_share[share]:
                del self._by_share[share]

    @contextmanager
    def counted(self, share: str) -> Iterator[bool]:
        """Count one more while inside; False if too many wait already."""
        may_wait = self.begin(share)
        try:
            yield may_wait
        finally:
            if may_wait:
                self.end(share)


class ByShare(Generic[Item]):
    """What waits for its turn: one of each project after the other, in the order in which they came."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[Item]] = {}  # of the projects that want a turn, the next one first

    def __bool__(self) -> bool:
        return bool(self._queues)

    def put(self, share: str, item: Item) -> None:
        """Add something of a project."""
        self._queues.setdefault(share, deque()).append(item)

    def take(self) -> tuple[str, Item]:
        """The next project whose turn it is, and what it has."""
        share = next(iter(self._queues))
        queue = self._queues.pop(share)
        item = queue.popleft()
        if queue:
            self._queues[share] = queue  # behind all others
        return share, item


class Lane:
    """Runs jobs on threads, a few at once: one of each project in turn, in the order in which they came."""

    def __init__(self, loop: AbstractEventLoop, threads: Threads, running_max: int, waiting: Waiting) -> None:
        self._loop = loop
        self._threads = threads
        self._running_max = running_max
        self._waiting = waiting
        self._running = 0
        self._queue = ByShare[Job]()

    def run(self, share: str, job: Job) -> None:
        """Run a job when it is its turn. To be called on the event loop."""
        self._queue.put(share, job)
        self._go_on()

    def pass_on(self) -> None:
        """Note that a job has ended, or waits. To be called on its thread."""
        with suppress(RuntimeError):  # the loop has stopped
            self._loop.call_soon_threadsafe(self._passed_on)

    def _passed_on(self) -> None:
        self._running -= 1
        self._go_on()

    def _go_on(self) -> None:
        while self._queue and self._running < self._running_max:
            share, job = self._queue.take()
            self._running += 1
            turn = Turn(self, share, self._waiting)
            self._threads.run(lambda job=job, turn=turn: turn.run(job))  # type: ignore[misc]


class InTurn:
    """Runs short jobs on the event loop: one of each project in turn, and whatever else came in between."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._queue = ByShare[Callable[[], None]]()

    def run(self, share: str, job: Callable[[], None]) -> None:
        """Run a job when it is its turn."""
        if not self._queue:
            self._loop.call_soon(self._run_next)
        self._queue.put(share, job)

    def _run_next(self) -> None:
        _, job = self._queue.take()
        if self._queue:
            self._loop.call_soon(self._run_next)
        job()


class Turn:
    """A job's turn to run on a thread; it passes to another one when the job begins to wait."""

    def __init__(self, lane: Lane, share: str, waiting: Waiting) -> None:
        self._lane = lane
        self._share = share
        self._waiting = waiting
        self._is_waiting = False

    def run(self, job: Job) -> None:
        """Run the job on this thread."""
        try:
            job(self)
        finally:
            if self._is_waiting:
                self._waiting.end(self._share)
            else:
                self._lane.pass_on()

    def begin_waiting(self) -> bool:
        """Let another job run; False if too many wait already. To be called on the job's thread."""
        if not self._is_waiting and self._waiting.begin(self._share):
            self._is_waiting = True
            self._lane.pass_on()
        return self._is_waiting


WOKEN_MAX: Final = 16  # at once


class Watchers:
    """Serves event streams; each publication wakes all watchers of a project with one call."""

    def __init__(self, loop: AbstractEventLoop, send_seconds: float) -> None:
        self._loop = loop
        self._send_seconds = send_seconds
        self._audiences: dict[tuple[Events, float], _Audience] = {}

    async def serve(self, stream: EventStream, response: Response) -> None:
        """Send events until the project ends, or the client goes or reads no more."""
        with self._listening(stream) as news, stream.watched():
            response.on_lost = news.set
            try:
                await self._serve(stream, news, response)
            except TimeoutError:
                response.reset()
            else:
                response.end()

    async def _serve(self, stream: EventStream, news: Event, response: Response) -> None:
        text: str | None = stream.begin()
        while text is not None and not response.is_closed:
            response.send_piece(text.encode())
            async with timeout(self._send_seconds):
                await response.drained()
            with suppress(TimeoutError):
                async with timeout(HEARTBEAT_SECONDS):
                    await news.wait()
            news.clear()
            text = stream.take() or (None if stream.events.is_ended else stream.heartbeat)

    @contextmanager
    def _listening(self, stream: EventStream) -> Iterator[Event]:
        key = stream.events, stream.apart_seconds_per_watcher
        audience = self._audiences.get(key)
        if audience is None:
            audience = self._audiences[key] = _Audience(self._loop, stream)
            stream.events.listen(audience.call)
        news = Event()
        audience.waiting.add(news)
        try:
            yield news
        finally:
            audience.waiting.discard(news)
            if not audience.waiting:
                del self._audiences[key]
                stream.events.ignore(audience.call)


class _Audience:
    """The watchers of one project who get their events at the same time."""

    def __init__(self, loop: AbstractEventLoop, stream: EventStream) -> None:
        self.waiting: set[Event] = set()
        self._loop = loop
        self._stream = stream  # any of them: they all are as far apart
        self._is_called = False

    def call(self) -> None:
        """Wake all watchers soon, once for all that is published until then. To be called on any thread."""
        if not self._is_called:
            self._is_called = True
            with suppress(RuntimeError):  # the loop has stopped
                self._loop.call_soon_threadsafe(self._wait)

    def _wait(self) -> None:
        """Collect events for a while."""
        self._loop.call_later(self._stream.apart_seconds, self._wake)

    def _wake(self) -> None:
        self._is_called = False
        self._wake_some(list(self.waiting))

    def _wake_some(self, waiting: list[Event]) -> None:
        """Wake a few watchers, and the others when the requests that have come meanwhile were answered."""
        for news in waiting[:WOKEN_MAX]:
            news.set()
        if len(waiting) > WOKEN_MAX:
            self._loop.call_soon(self._wake_some, waiting[WOKEN_MAX:])


STREAM_SECONDS_MAX: Final = 600.0  # for a whole response that is sent piece by piece

log = logging.getLogger(__name__)


class Gateway:
    """Has a site answer the requests of all connections."""

    def __init__(
        self,
        site: Site,
        loop: AbstractEventLoop,
        lost: Callable[[], None],
        limits: Limits,
        statistics: Statistics,
        cluster: "Cluster | None",
    ) -> None:
        """``lost`` is called when a connection has ended; ``cluster`` knows where projects are."""
        self.connections: set[Connection] = set()
        self.is_full = False
        self.statistics = statistics
        self.limits = limits
        self.lost = lost
        self.site = site
        self._loop = loop
        self._threads = Threads("request")
        waiting = Waiting(limits.waiting)
        running_max = RUNNING_MAX if cluster is None else RUNNING_MAX_SHARED
        self._working = Lane(loop, self._threads, running_max, waiting)
        self._reading = Lane(loop, self._threads, READING_MAX, waiting)
        self._at_once = InTurn(loop)
        self._watching = Waiting(limits.watching)
        self._watchers = Watchers(loop, limits.send_seconds)
        self._tasks: set[Task[None]] = set()
        self._snapshots_bytes = 0
        self._cluster = cluster

    @property
    def others_wait(self) -> bool:
        """Whether connections end with their responses: clients wait for room, or should go elsewhere."""
        return self.is_full or (self._cluster is not None and self._cluster.is_draining)

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
        """Answer a request."""
        is_whole = len(request.body) == request.length
        if not is_whole and takes_snapshot(request.path.decode("latin-1")):
            busy = "too many snapshots are being received; try again later"
            response.send(error(503, busy, retry=True))
            return
        self.run(request, environment(request, response.peers), response)

    def run(self, request: Request, environ: dict[str, Any], response: Response) -> None:
        """Have the site answer a request, in its turn."""
        try:
            placement = self.site.place(environ, request.length)
        except Exception:
            log.exception("a request could not be placed")
            placement = Placement(on_thread=False)
        if placement.on_thread:
            lane = self._reading if request.length > LARGE_BYTES else self._working
            lane.run(placement.share, self._job(environ, placement.share, response))
        else:
            environ[ON_EVENT_LOOP] = True
            share = placement.share
            self._at_once.run(share, lambda: self._answer(Run(self.site, environ), share, response))

    def _job(self, environ: dict[str, Any], share: str, response: Response) -> Job:
        def job(turn: Turn) -> None:
            environ[BEGIN_WAITING] = turn.begin_waiting
            run = Run(self.site, environ)
            whole = run.whole() if run.is_short else None
            self._on_loop(lambda: self._answer(run, share, response, whole))

        return job

    def _answer(self, run: Run, share: str, response: Response, whole: Any = None) -> None:
        """Send what the application has answered."""
        if STREAM in run.environ:
            self.start(self._watch(run, share, response))
        elif run.is_short:
            self._deliver(whole or run.whole(), response)
        else:
            self.start(self._send_pieces(run, share, response))

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
        except CancelledError:  # the server stops; a thread may still make the next piece
            return
        except Exception:
            log.exception("a response could not be sent to its end")
            response.cut()
        run.close()

    async def _next_piece(self, pieces: Any, share: str) -> bytes | None:
        """The next piece of a response, made on a thread; None at its end."""
        piece: bytes | None = await on_thread(
            self._loop,
            lambda job: self._working.run(share, lambda turn: job()),
            lambda: next(pieces, None),
        )
        return piece

    def start(self, work: Any) -> None:
        """Run a coroutine on the event loop."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_loop(self, work: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:  # the loop has stopped
            log.debug("a response came after the server had stopped")
