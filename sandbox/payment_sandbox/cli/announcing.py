"""What ``serve`` says when it is ready, to people and to programs."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.cli.failing import fail
from payment_sandbox.cli.printing import put_once
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from payment_sandbox.projects.settings import Settings
    from payment_sandbox.serving.server import Server


FIRST_ORDER: Final = (
    '{"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}'
)


class Announced(NamedTuple):
    """A server that is ready; ``control_token`` if others can reach it."""

    server: "Server"
    host: str
    control_token: str | None


def announce(announced: Announced, *, as_json: bool) -> None:
    """Print where the server listens, and what to try."""
    if as_json:
        put_once(f"{json.dumps(_for_programs(announced))}\n")
    else:
        put_once("".join(f"{line}\n" for line in _for_people(announced)))


def forget_ready(path: Path | None) -> None:
    """Remove the file of an earlier start, before somebody takes it for this one's."""
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        fail(f"--ready-file: cannot replace {path}: {str(error.strerror).lower()}")


def write_ready(path: Path | None, server: "Server") -> None:
    """Write the file atomically, because a waiting program may read it at once."""
    if path is None:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(_ready(server)))
        part.replace(path)
    except OSError as error:
        server.stop()
        fail(f"--ready-file: cannot write {path}: {error.strerror}")


def _ready(server: "Server") -> dict[str, Any]:
    """How programs reach the server; ``listening`` is the local address, ``url`` may be public."""
    shown = {
        "url": server.url,
        "listening": server.local_url,
        "pid": os.getpid(),
        "version": __version__,
    }
    authority = server.security.authority
    return {**shown, "ca_file": str(authority)} if authority is not None else shown


def _for_programs(announced: Announced) -> dict[str, Any]:
    from payment_sandbox.projects.registry import FIRST_API_KEY

    shown = {"message": "ready", **_ready(announced.server), "api_key": FIRST_API_KEY}
    if announced.control_token is not None:
        shown["control_token"] = announced.control_token
    if announced.server.ignored:
        shown["ignored"] = announced.server.ignored
    return shown


def _for_people(announced: Announced) -> Iterator[str]:
    from payment_sandbox.projects.registry import FIRST_API_KEY  # here, so that --help is fast

    server = announced.server
    yield f"Payment sandbox {__version__} on {server.url}, API key {FIRST_API_KEY}. Try:"
    yield ""
    trusted = f"--cacert {server.security.authority} " if server.security.authority is not None else ""
    address = f"{server.url}/v1/orders/"
    yield f"  curl {trusted}-u {FIRST_API_KEY}: {address} -H 'Content-Type: application/json' \\"
    yield f"    -d '{FIRST_ORDER}'"
    yield ""
    yield f"Then open {server.url}/ in a browser: the dashboard shows the order and leads to its payment."
    yield f"Documentation: {server.url}/docs/"
    yield from _about_tls(server)
    yield from _about_others(announced)
    yield from _about_projects(server)
    yield from (f"Ignored: {sentence}." for sentence in server.ignored)
    yield ""


def _about_tls(server: "Server") -> Iterator[str]:
    from payment_sandbox.serving.binding import LOOPBACK, url_of

    if server.security.tls is None:
        return
    plain = url_of(LOOPBACK, server.port)
    yield f"The same port speaks https and http: {url_of('localhost', server.port, 'https')}/, {plain}/"
    authority = server.security.authority
    if authority is not None:
        yield f"Let your browser and your shop trust {authority}; {server.url}/docs/https/ says how."


def _about_others(announced: Announced) -> Iterator[str]:
    from payment_sandbox.serving.binding import EVERYWHERE, own_addresses, url_of

    if announced.control_token is None:
        return
    server = announced.server
    scheme = server.url.partition(":")[0]
    host = announced.host
    addresses = own_addresses() if host in EVERYWHERE else [host]
    reached = [url_of(found, server.port, scheme) for found in addresses if ":" in host or ":" not in found]
    if reached:  # 0.0.0.0 has no IPv6
        yield f"Other devices in your network reach it at {', '.join(reached)}"
        yield "under names of yours, too, if you add --allow-host NAME."
    yield f"Pages and codes lead to {server.url}"
    yield "The dashboard asks for the API key, or for the control token, which creating projects needs:"
    yield f"  control token {announced.control_token}"


def _about_projects(server: "Server") -> Iterator[str]:
    projects = server.registry.all()
    if len(projects) > 1:
        yield f"Projects: {', '.join(project.settings.name or project.project_id for project in projects)}."
    about = [_about_webhooks(project.settings, is_alone=len(projects) == 1) for project in projects]
    yield from filter(None, about)
    if not any(about):
        yield "Webhooks go to the webhook_url of each order; serve --webhook-url URL sets one for all."


def _about_webhooks(settings: "Settings", *, is_alone: bool) -> str | None:
    """Where the webhooks of a project go, unless each order has to say so."""
    name = "" if is_alone else f" of {settings.name}"
    if settings.forward_to is not None:
        return f"Webhooks{name} wait for payment-sandbox listen, which takes them to {settings.forward_to}"
    return f"Webhooks{name} go to {settings.webhook_url}" if settings.webhook_url is not None else None
