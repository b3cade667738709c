"""Checks the options of ``serve`` that no type of option checks."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import click

from payment_sandbox.cli.failing import fail
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.orders.refusals import Invalid

EXAMPLES: Final = ("https://shop.example/paid", "http://localhost:3000/webhook")
PORT_DEFAULT: Final = 8080
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
HOST_NAME: Final = Pattern(r"[A-Za-z0-9_.-]+|[0-9A-Fa-f:.]+")  # or an IPv6 address


def check_options(host: str, options: Mapping[str, Any]) -> None:
    """Refuse addresses, host names and times that cannot be."""
    from payment_sandbox.projects.clock import ClockStart
    from payment_sandbox.projects.settings import Settings, read_settings

    public_url = options["public_url"]
    try:
        ClockStart.parse(options["clock"])
    except Invalid as invalid:
        fail(f"--{invalid}")
    if public_url is not None and not is_server_url(public_url):
        fail(f"--public-url: {public_url!r} is not a URL such as http://pay.example:8080")
    if options["webhook_url"] is not None:
        try:
            read_settings({"webhook_url": options["webhook_url"]}, Settings())
        except Invalid as invalid:
            message = invalid.violations[0].message
            fail(f"--webhook-url: {options['webhook_url']!r} {message.replace(*EXAMPLES)}")
    if HOST_NAME.fullmatch(host) is None:
        fail(f"--host: {host!r} is not an address such as 127.0.0.1 or 0.0.0.0, without scheme and port")
    for name in options["allow_hosts"]:
        if HOST_NAME.fullmatch(name) is None:
            fail(f"--allow-host: {name!r} is not a host name such as pay.example, without scheme and port")


class Number(click.IntRange):
    """A whole number within bounds, with errors in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            upper = f" to {self.max}" if self.max is not None else " upwards"
            self.fail(f"{value!r} is not a whole number from {self.min}{upper}", param, ctx)


class Seconds(click.FloatRange):
    """A number of seconds within bounds, with errors in words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number from {self.min} to {self.max}", param, ctx)


class Port(Number):
    """A port; what Kubernetes and Docker links put into SANDBOX_PORT for a service of that name is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it."""
        is_link = isinstance(value, str) and value.startswith("tcp://")
        return super().convert(PORT_DEFAULT if is_link else value, param, ctx)


def is_server_url(url: str) -> bool:
    """Whether a URL can be that of a server."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment
    return parts.scheme in ("http", "https") and bool(parts.hostname) and is_plain
