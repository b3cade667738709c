"""Lets the wall clock of this process tell the sandbox time of one project."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

MISSING = "wall_clock needs freezegun: pip install freezegun"


@contextmanager
def following(project: "Project") -> Iterator[None]:
    """While inside, ``datetime.now()`` and the like tell this project's time.

    Raises:
        RuntimeError: freezegun is not installed.
    """
    try:
        from freezegun import freeze_time
    except ImportError:
        raise RuntimeError(MISSING) from None
    timeline, freezer = project.epoch.timeline, freeze_time(project.now(), real_asyncio=True)
    before, clock = timeline.moved, freezer.start()

    timeline.moved = clock.move_to
    try:
        yield
    finally:
        timeline.moved = before
        freezer.stop()
