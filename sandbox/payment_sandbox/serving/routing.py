"""Brings each request to the server that owns its project: this one, or another one."""

import asyncio
import logging
from asyncio import AbstractEventLoop
from typing import Any, Final, NamedTuple, Protocol

from aiohttp import web

from payment_sandbox.serving.cluster import Cluster, Elsewhere
from payment_sandbox.serving.forwarding import (
    HOPS_MAX,
    BrokenOff,
    Forwarder,
    Unsent,
    cut_answer,
    passed_on,
    taken_from,
)
from payment_sandbox.serving.replies import Reply
from payment_sandbox.serving.threads import Threads, on_thread
from payment_sandbox.serving.wsgi import Called, Peers, Request, environment, error
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.storage.connections import Unavailable
from payment_sandbox.web.carried import MOVED, ON_MOVED

OWNER_SECONDS_MAX: Final = 15.0  # until the lease of a server that was killed is over, and some
BROKEN_SECONDS_MAX: Final = 2.0  # for a database that has ended its connections, and takes new ones
AGAIN_SECONDS: Final = 0.1
HOPS_AT_ONCE: Final = 2
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
NO_OWNER: Final = "no server has this project yet: one has gone, and another is about to take it over"
BROKE_OFF: Final = "the server that has this project broke off; whether it has done what you asked is unknown"

log = logging.getLogger(__name__)


class Caller(Protocol):
    """Has this server's own application answer requests."""

    def subject(self, environ: dict[str, Any]) -> str | None:
        """The id or the key digest of the project that a request is about; None: of none."""
        ...

    async def call(self, request: Request, environ: dict[str, Any]) -> Called:
        """Call the application in the turn of the request's project."""
        ...

    async def respond(self, called: Called, reply: Reply) -> web.StreamResponse:
        """Send what the application has said."""
        ...


class Routed(NamedTuple):
    """A request on its way to its project, and how often it was passed on."""

    request: Request
    peers: Peers
    reply: Reply
    subject: str
    hops: int


class Router:
    """Runs requests here, or has another server answer them."""

    def __init__(self, here: Caller, cluster: Cluster, loop: AbstractEventLoop, threads: Threads) -> None:
        self._here = here
        self._cluster = cluster
        self._loop = loop
        self._threads = threads
        self._forwarder = Forwarder(loop)

    async def answer(self, request: Request, reply: Reply) -> web.StreamResponse:
        """Answer a request here, or wherever its project is."""
        request, peers, hops = taken_from(request, reply.peers, self._cluster.secret)
        environ = environment(request, peers)
        subject = self._here.subject(environ)
        if hops:
            reply.shown_cut = cut_answer
            self._cluster.suspect(subject or "")  # it was sent here, so it is not where this server thinks
        if subject is None:
            return await self._run(request, environ, reply)
        routed = Routed(request, peers, reply, subject, hops)
        return await self._run_here(routed, environ) or await self._bring(routed)

    async def close(self) -> None:
        """Close the connections to other servers."""
        await self._forwarder.close()

    async def _run(self, request: Request, environ: dict[str, Any], reply: Reply) -> web.StreamResponse:
        return await self._here.respond(await self._here.call(request, environ), reply)

    async def _run_here(self, routed: Routed, environ: dict[str, Any]) -> web.StreamResponse | None:
        """Run it, if the project is here; None if it is not, or has left before anything was done."""
        end = self._cluster.hold(routed.subject)
        if end is None:
            return None
        try:
            before = self._cluster.sequence(routed.subject)
            environ[ON_MOVED] = True
            called = await self._here.call(routed.request, environ)
            if MOVED in environ and self._may_run_again(routed, before):
                called.run.close()
                return None
            return await self._here.respond(called, routed.reply)
        finally:
            end()

    def _may_run_again(self, routed: Routed, before: int) -> bool:
        """Whether a request may run on the new owner of its project, because it has done nothing here."""
        is_untouched = self._cluster.sequence(routed.subject) in (before, -1)
        return is_untouched and routed.hops < HOPS_MAX

    async def _bring(self, routed: Routed) -> web.StreamResponse:
        """Bring a request to its project's server, as soon as it has one."""
        if routed.hops >= HOPS_AT_ONCE:  # the project changes servers just now
            await asyncio.sleep(AGAIN_SECONDS)
        began_seconds, problem = self._loop.time(), NO_OWNER
        until_seconds = began_seconds + OWNER_SECONDS_MAX
        while self._loop.time() < until_seconds and not routed.reply.is_closed:
            try:
                response = await self._brought(routed)
                if response is not None:
                    return response
            except Unavailable as failed:
                problem = str(failed)
                until_seconds = min(until_seconds, began_seconds + BROKEN_SECONDS_MAX)
            except NotStored as failed:
                problem = str(failed)
            await asyncio.sleep(AGAIN_SECONDS)
        return routed.reply.whole(error(503, problem, retry=True))

    async def _brought(self, routed: Routed) -> web.StreamResponse | None:
        """Bring it to where its project is now; None to try again.

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
            return await self._run(routed.request, environ, routed.reply)
        return await self._run_here(routed, environ)

    async def _forwarded(self, routed: Routed, place: Elsewhere) -> web.StreamResponse | None:
        """Have another server answer; None if it has seen nothing of the request, or may see it again."""
        request, reply, cluster = routed.request, routed.reply, self._cluster
        if routed.hops >= HOPS_MAX:
            return reply.whole(error(503, NO_OWNER, retry=True))
        header = passed_on(routed.peers, routed.hops + 1, cluster.secret)
        try:
            return await self._forwarder.forward(
                request, header, place.address, reply, lambda: cluster.is_alive(place.server_id)
            )
        except Unsent:
            cluster.suspect(routed.subject)
            return None
        except BrokenOff:
            cluster.suspect(routed.subject)
            if request.method in SAFE_METHODS:
                return None
            return reply.whole(error(503, BROKE_OFF, retry=True))
        except ConnectionError:
            return reply.cut()
        except Exception:
            log.exception("a request could not be passed on")
            return reply.cut() if reply.has_begun else reply.whole(error(502, BROKE_OFF, retry=True))
