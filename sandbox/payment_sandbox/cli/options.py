"""Common parts of all commands: options, groups, errors and output."""

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import click

from payment_sandbox.kernel.patterns import Pattern, make_printable
from payment_sandbox.serving import sessions


def say(*lines: str, to_stderr: bool = False) -> None:
    """Print lines, escaping control characters, so that untrusted text cannot forge lines."""
    print(
        "\n".join(map(make_printable, lines)), file=sys.stderr if to_stderr else sys.stdout, flush=to_stderr
    )


def fail(*sentences: str) -> NoReturn:
    """Print an error, and exit with code 2."""
    say(*(f"payment-sandbox: {sentence}" for sentence in sentences), to_stderr=True)
    sys.exit(2)


def short_time(moment: str) -> str:
    """Format a time, always UTC, without fractions or an offset."""
    return moment[:19].replace("T", " ")


PORT_DEFAULT: Final = 8080
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HOST_NAME: Final = Pattern(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")  # or an IPv6 address


def trust_of_option(option: str, certificates: Path | None, *, is_insecure: bool) -> SSLContext | None:
    """Return the trust settings of an option; None for the system's certificates."""
    if certificates is None and not is_insecure:
        return None
    try:
        return sessions.trusting_context(certificates, insecure=is_insecure)
    except sessions.CertificateRefused as refused:
        fail(f"{option}: {refused}")


class NumberOption(click.IntRange):
    """A whole number within bounds, with readable errors."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert an argument to a number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            upper = f" to {self.max}" if self.max is not None else " upwards"
            self.fail(f"{value!r} is not a whole number from {self.min}{upper}", param, ctx)


class Port(NumberOption):
    """A port; ignores the tcp:// URL that Kubernetes and Docker links set in SANDBOX_PORT."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert an argument to a number."""
        is_link = isinstance(value, str) and value.startswith("tcp://")
        return super().convert(PORT_DEFAULT if is_link else value, param, ctx)


def is_server_url(url: str) -> bool:
    """Return whether a URL is valid for a server: http or https, with a host, but no query or fragment."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain


STANDARD_OUTPUT: Final = 1

Write = Callable[[bytes], int]
"""Writes a prefix of the data; returns its length."""


def to_standard_output(data: bytes) -> int:
    """Write unbuffered, so that no data remains in a buffer at exit."""
    try:
        return os.write(STANDARD_OUTPUT, data)
    except BlockingIOError:  # standard output is in non-blocking mode
        select.select([], [STANDARD_OUTPUT], [], 1.0)
        return 0


def write_text(text: str, write: Write = to_standard_output) -> None:
    """Write the whole text.

    Raises:
        OSError: the reader has closed the output.
    """
    data = text.encode(errors="replace")
    while data:
        data = data[write(data) :]


def print_once(text: str) -> None:
    """Print a text; ignore a closed output."""
    with suppress(OSError):
        write_text(text)
