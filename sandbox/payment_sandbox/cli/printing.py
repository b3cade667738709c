"""Prints what a long-running command tells; whoever reads it may go away, and the command goes on."""

import os
import select
from collections.abc import Callable
from contextlib import suppress
from typing import Final

STANDARD_OUTPUT: Final = 1

Write = Callable[[bytes], int]
"""Writes the beginning of some bytes; returns how many."""


def to_standard_output(data: bytes) -> int:
    """Write without a buffer, which would still be full when the program ends."""
    try:
        return os.write(STANDARD_OUTPUT, data)
    except BlockingIOError:  # somebody made it so that nothing waits
        select.select([], [STANDARD_OUTPUT], [], 1.0)
        return 0


def put(text: str, write: Write = to_standard_output) -> None:
    """Write a text whole.

    Raises:
        OSError: nobody reads it any more.
    """
    data = text.encode(errors="replace")
    while data:
        data = data[write(data) :]


def put_once(text: str) -> None:
    """Print a text that nobody has to read."""
    with suppress(OSError):
        put(text)
