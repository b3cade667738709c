"""Keeping the place of the writer: one server of a database has it, and the others are standbys."""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from threading import Event, Thread
from typing import Final

from flask import Flask, Response, g, request

from payment_sandbox.projects.project import DROPPED
from payment_sandbox.projects.store import NotStored
from payment_sandbox.serving.realtime import boot_seconds
from payment_sandbox.serving.threads import Threads, start
from payment_sandbox.storage import postgresql, sql
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.version import __version__
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.error_bodies import TYPE_BY_STATUS, error_body

ASK_SECONDS: Final = 0.5
"""The time between two attempts to become the writer."""
STOP_SECONDS: Final = 1.0
HEALTH: Final = "/health"
REFUSALS: Final = range(400, 500)
UNAVAILABLE: Final = 503
STANDBY: Final = "this server is a standby: another server has the state, or the database does not answer"

Load = Callable[[sql.SqlStorage, sql.StoredState], None]

log = logging.getLogger(__name__)


class Keeper:
    """Asks for the place of the writer, loads the state, and starts over when the connection is lost.

    A lost connection drops the memory of the server, because another server may write meanwhile. Loading it
    again waits for no lock that a thread holds while its commit is in doubt.
    """

    def __init__(self, address: str, load: Load, drop: Callable[[], None]) -> None:
        """Connect, and load the state unless another server is the writer; then keep on a thread.

        Raises:
            StateRefused: the database cannot be used.
        """
        self._address = address
        self._load = load
        self._drop = drop
        self._threads = Threads("database")
        self._stopping = Event()
        self._place: postgresql.Session | None = None  # once the state is loaded
        self._problem = ""  # the newest one in the log
        self._in_doubt: postgresql.Session | None = None
        try:
            with ExitStack() as on_failure:
                self.session = self._connect()
                on_failure.callback(self.session.close)
                if self.session.try_lock():
                    self._take()
                on_failure.pop_all()
        except NotStored as failed:
            raise StateRefused(f"{failed.place} cannot be used: {failed.reason}") from failed
        self._thread = Thread(target=self._run, name="keeper", daemon=True)
        start(self._thread)

    def place(self) -> postgresql.Session | None:
        """Return the session through which this server is the writer, if its memory is the state."""
        place = self._place
        return place if place is not None and place.is_current() else None

    def stop(self) -> None:
        """Give up the place, so that another server can have it."""
        self._stopping.set()
        self.session.over.set()
        self._thread.join(STOP_SECONDS)
        self.session.close()
        self._threads.stop()

    def _connect(self) -> postgresql.Session:
        return postgresql.Session(self._address, boot_seconds, self._threads.run)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self.session.over.is_set():
                    self.session = self._connect()
                if self._place is not None or self.session.try_lock():
                    self._keep()
            except NotStored as failed:
                self._warn(f"{failed.place or self.session.place}: {failed.reason}")
            except StateRefused as refused:
                self._warn(str(refused))
            except Exception:
                log.exception("the state could not be loaded")
                self.session.close()
            self._stopping.wait(ASK_SECONDS)

    def _keep(self) -> None:
        """Be the writer until the connection is lost."""
        try:
            if self._place is None:
                self._take()
            self._problem = ""
            while not self.session.over.wait(postgresql.BEAT_SECONDS):
                self.session.beat()
            if not self._stopping.is_set():
                self._warn(f"{self.session.place}: the connection was lost; the state is read again")
        finally:
            if self._place is not None:
                self._place, self._in_doubt = None, self._place
            if not self._stopping.is_set():
                self._drop()
            self.session.close()

    def _take(self) -> None:
        """Load the state, as the writer."""
        session = self.session
        state = session.open()
        if self._in_doubt is not None:
            self._in_doubt.settle(session.newest_before)
            self._in_doubt = None
        self._load(session, state)
        session.end_loading()
        self._place = session

    def _warn(self, problem: str) -> None:
        if problem != self._problem:  # once, and not twice a second
            log.warning("%s", problem)
        self._problem = problem


def guard(app: Flask, keeper: Keeper) -> None:
    """Refuse all calls while this server does not have the state.

    If memory was dropped during a call, a refusal may tell what memory lacks, so the call is to be repeated.
    """

    def admit() -> Response | None:
        g.place = keeper.place()
        if g.place is not None:
            return None
        if request.path.rstrip("/") == HEALTH:
            return json_answer({"status": "standby", "version": __version__}, UNAVAILABLE)
        return _answer(STANDBY)

    def check(response: Response) -> Response:
        is_refused = response.status_code in REFUSALS
        return _answer(DROPPED) if is_refused and g.get("place") is not keeper.place() else response

    app.before_request(admit)
    app.after_request(check)


def _answer(problem: str) -> Response:
    body = error_body(UNAVAILABLE, TYPE_BY_STATUS[UNAVAILABLE], problem)
    answer = json_answer(body, UNAVAILABLE)
    answer.headers["Retry-After"] = "1"
    return answer
