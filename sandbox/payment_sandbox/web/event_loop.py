"""Which requests the server runs on its event loop, and which it runs on threads.

The server first calls the application on its event loop, where nothing may wait. A request that may wait
leaves the loop with ``MayWait`` before it has changed anything; the server then runs it on a thread. Few
threads run at once; one that is about to wait says so, and then another one may run meanwhile.
"""

from typing import Final

from payment_sandbox.operations.clock import catch_up, must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.web.carried import exchange
from payment_sandbox.web.errors import RequestRefused
from payment_sandbox.web.routes import current_facts

ON_EVENT_LOOP: Final = "sandbox.on_event_loop"
"""Set in a request's WSGI environment while it runs on the event loop."""

BEGIN_WAITING: Final = "sandbox.begin_waiting"
"""In the environment of a request on a thread: what to call before it waits; False if too many wait."""


class MayWait(BaseException):
    """This request may wait or take long, so it has to run on a thread; nothing has happened yet."""


TOO_MANY_WAIT: Final = "too many calls wait already; try again when some have ended"


def leave_event_loop() -> None:
    """Make sure that the request runs on a thread, because it may take long.

    Raises:
        MayWait: it runs on the event loop.
    """
    if ON_EVENT_LOOP in exchange().request.environ:
        raise MayWait


def begin_waiting() -> None:
    """Make sure that the request runs on a thread where it may wait, for whatever it likes.

    Raises:
        MayWait: it runs on the event loop.
        RequestRefused: 503, too many requests wait already.
    """
    leave_event_loop()
    begin = exchange().request.environ.get(BEGIN_WAITING)
    if begin is not None and not begin():
        raise RequestRefused(503, TOO_MANY_WAIT, {"Retry-After": "1"})


def leave_if_route_is_slow() -> None:
    """Leave the event loop if the route's facts say that it takes long or waits."""
    facts = current_facts()
    if facts is not None and facts.waits:
        begin_waiting()
    elif facts is not None and facts.slow:
        leave_event_loop()


def catch_up_on_thread(project: Project) -> None:
    """Run what is due on a running clock; there may be a lot of it, so never on the event loop."""
    if must_catch_up(project):
        leave_event_loop()
        catch_up(project)
