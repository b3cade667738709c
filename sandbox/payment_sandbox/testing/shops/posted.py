"""A webhook on its way to an application in this process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS
from payment_sandbox.testing.deadlines import interrupted_after

GRACE_SECONDS: Final = 0.2  # an event loop cancels its handler in this time, before it is interrupted


class Posted(NamedTuple):
    """One webhook; with ``is_limited``, a handler that takes too long is interrupted."""

    url: str
    headers: list[tuple[str, str]]
    body: bytes
    is_limited: bool


@contextmanager
def limited(posted: Posted) -> Iterator[None]:
    """Interrupt a handler on a thread that somebody waits for, once its time is over.

    Raises:
        TimeLimit: it was interrupted.
    """
    if not posted.is_limited:
        yield
        return
    with interrupted_after(TIMEOUT_SECONDS + GRACE_SECONDS):
        yield
