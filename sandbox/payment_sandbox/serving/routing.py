"""Brings each request to the server that owns its project: this one, or another one."""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol

from payment_sandbox.serving.cluster import Cluster, Elsewhere
from payment_sandbox.serving.connection import Response
from payment_sandbox.serving.forwarding import (
    HOPS_MAX,
    BrokenOff,
    Forwarder,
    Unsent,
    cut_answer,
    passed_on,
    taken_from,
)
from payment_sandbox.serving.threads import Threads, on_thread
from payment_sandbox.serving.wsgi import Peers, Request, Site, environment, error
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.connections import Unavailable
from payment_sandbox.web.carried import ON_MOVED

OWNER_SECONDS_MAX: Final = 15.0  # until the lease of a server that was killed is over, and some
BROKEN_SECONDS_MAX: Final = 2.0  # for a database that has ended its connections, and takes new ones
AGAIN_SECONDS: Final = 0.1
HOPS_AT_ONCE: Final = 2
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
NO_OWNER: Final = "no server has this project yet: one has gone, and another is about to take it over"
BROKE_OFF: Final = "the server that has this project broke off; whether it has done what you asked is unknown"

log = logging.getLogger(__name__)


class Runner(Protocol):
    """Has this server's own application answer requests."""

    site: Site

    def run(self, request: Request, environ: dict[str, Any], response: Response) -> None:
        """Have the site answer a request, in its turn."""
        ...

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine on the event loop."""
        ...


class Routed(NamedTuple):
    """A request on its way to its project, and how often it was passed on."""

    request: Request
    peers: Peers
    response: Response
    subject: str
    hops: int


class Router:
    """Runs requests here, or has another server answer them."""

    def __init__(self, here: Runner, cluster: Cluster, loop: AbstractEventLoop, threads: Threads) -> None:
        self._here = here
        self._cluster = cluster
        self._loop = loop
        self._threads = threads
        self._forwarder = Forwarder(loop)

    def serve(self, request: Request, response: Response) -> None:
        """Answer a request, now or later."""
        request, peers, hops = taken_from(request, response.peers, self._cluster.secret)
        environ = environment(request, peers)
        subject = self._here.site.subject(environ)
        if hops:
            response.shown_cut = cut_answer
            self._cluster.suspect(subject or "")  # it was sent here, so it is not where this server thinks
        if subject is None:
            self._here.run(request, environ, response)
            return
        routed = Routed(request, peers, response, subject, hops)
        if not self._run_here(routed, environ):
            self._here.start(self._bring(routed))

    async def close(self) -> None:
        """Close the connections to other servers."""
        await self._forwarder.close()

    def _run_here(self, routed: Routed, environ: dict[str, Any]) -> bool:
        """Run it, if the project is here."""
        end = self._cluster.hold(routed.subject)
        if end is None:
            return False
        before = self._cluster.sequence(routed.subject)
        routed.response.on_end = end
        environ[ON_MOVED] = lambda: self._run_again(routed, before, end)
        self._here.run(routed.request, environ, routed.response)
        return True

    def _run_again(self, routed: Routed, before: int, end: Callable[[], None]) -> bool:
        """Bring a request to the new owner of its project, if it has done nothing here yet."""
        is_untouched = self._cluster.sequence(routed.subject) in (before, -1)
        if not is_untouched or routed.hops >= HOPS_MAX:
            return False
        routed.response.on_end = None
        end()
        self._here.start(self._bring(routed._replace(hops=routed.hops + 1)))
        return True

    async def _bring(self, routed: Routed) -> None:
        """Bring a request to its project's server, as soon as it has one."""
        if routed.hops >= HOPS_AT_ONCE:  # the project changes servers just now
            await asyncio.sleep(AGAIN_SECONDS)
        began_seconds, problem = self._loop.time(), NO_OWNER
        until_seconds = began_seconds + OWNER_SECONDS_MAX
        while self._loop.time() < until_seconds and not routed.response.is_closed:
            try:
                if await self._is_brought(routed):
                    return
            except Unavailable as failed:
                problem = str(failed)
                until_seconds = min(until_seconds, began_seconds + BROKEN_SECONDS_MAX)
            except NotStored as failed:
                problem = str(failed)
            await asyncio.sleep(AGAIN_SECONDS)
        routed.response.send(error(503, problem, retry=True))

    async def _is_brought(self, routed: Routed) -> bool:
        """Bring it to where its project is now; False to try again.

        Raises:
            Unavailable: the database does not answer.
            NotStored: the project changes servers just now.
        """
        place = self._cluster.known(routed.subject) or await on_thread(
            self._loop, self._threads.run, lambda: self._cluster.locate(routed.subject)
        )
        if isinstance(place, Elsewhere):
            return await self._forwarded(routed, place)
        environ = environment(routed.request, routed.peers)
        if place is None:
            self._here.run(routed.request, environ, routed.response)
            return True
        return self._run_here(routed, environ)

    async def _forwarded(self, routed: Routed, place: Elsewhere) -> bool:
        """Have another server answer; False if it has seen nothing of the request, or may see it again."""
        request, response, cluster = routed.request, routed.response, self._cluster
        if routed.hops >= HOPS_MAX:
            response.send(error(503, NO_OWNER, retry=True))
            return True
        header = passed_on(routed.peers, routed.hops + 1, cluster.secret)
        try:
            await self._forwarder.forward(
                request, header, place.address, response, lambda: cluster.is_alive(place.server_id)
            )
        except Unsent:
            cluster.suspect(routed.subject)
            return False
        except BrokenOff:
            cluster.suspect(routed.subject)
            if request.method in SAFE_METHODS:
                return False
            response.send(error(503, BROKE_OFF, retry=True))
        except Exception:
            log.exception("a request could not be passed on")
            response.cut() if response.has_begun else response.send(error(502, BROKE_OFF, retry=True))
        return True
