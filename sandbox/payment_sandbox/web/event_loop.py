"""Which requests the server runs on its event loop, and which it runs on threads.

The server first calls the application on its event loop, where nothing may wait. A request that may wait
leaves the loop with ``MayWait`` before it has changed anything; the server then runs it on a thread.
"""

from typing import Final

from payment_sandbox.operations.clock import catch_up, must_catch_up
from payment_sandbox.projects.project import Project
from payment_sandbox.web.carried import exchange
from payment_sandbox.web.routes import current_facts

ON_EVENT_LOOP: Final = "sandbox.on_event_loop"
"""Set in a request's WSGI environment while it runs on the event loop."""


class MayWait(BaseException):
    """This request may wait or take long, so it has to run on a thread; nothing has happened yet."""


def leave_event_loop() -> None:
    """Make sure that the request runs on a thread.

    Raises:
        MayWait: it runs on the event loop.
    """
    if ON_EVENT_LOOP in exchange().request.environ:
        raise MayWait


def leave_if_route_waits() -> None:
    """Leave the event loop if the route's facts say that it may wait."""
    facts = current_facts()
    if facts is not None and facts.waits:
        leave_event_loop()


def catch_up_on_thread(project: Project) -> None:
    """Run what is due on a running clock; there may be a lot of it, so never on the event loop."""
    if must_catch_up(project):
        leave_event_loop()
        catch_up(project)
