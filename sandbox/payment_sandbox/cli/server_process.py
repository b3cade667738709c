"""The server process of ``serve``: its configuration, its start and its announcement."""

import gc
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from payment_sandbox.app import build
from payment_sandbox.cli.options import HOST_NAME, LOOPBACK, fail, is_server_url, trust_of_option
from payment_sandbox.loading import load_module
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.projects.clock import Start
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.projects.settings import Settings, read_settings
from payment_sandbox.projects.store import NotStored
from payment_sandbox.serving import binding, tls
from payment_sandbox.serving.binding import ALL_INTERFACES, PortInUse, own_addresses, url_of
from payment_sandbox.serving.config import Security, ServerConfig
from payment_sandbox.serving.server import Server as Server
from payment_sandbox.serving.sessions import CertificateRefused, direct_session
from payment_sandbox.storage.codec import StateRefused
from payment_sandbox.version import __version__
from payment_sandbox.web.routes import described_routes

if sys.platform != "win32":
    import resource

OPEN_FILES_LIMIT: Final = 16_384
EXAMPLE_URLS: Final = ("https://shop.example/paid", "http://localhost:3000/webhook")
STAND_IN: Final = "--stand-in-for"
HOST_OPTIONS: Final = (
    ("--allow-host", "allow_hosts", "pay.example"),
    ("--deliver-to", "deliver_to", "shop.example"),
    (STAND_IN, "stands_in_for", "api.provider.example"),
)
SWITCH_INTERVAL_SECONDS: Final = 0.001  # the longest time a thread may hold the interpreter lock
COLLECTION_THRESHOLDS: Final = (700, 5, 1)  # a full collection for every 8,000 new objects that live on
FIRST_ORDER: Final = (
    '{"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}'
)


def describe(
    server: Server, host: str, token: str | None, stands_in_for: Sequence[str], *, as_json: bool
) -> str:
    """Describe the address of a server, and a first call; ``stands_in_for`` are host names of providers."""
    shown_token = None if host in LOOPBACK else token  # only other machines need it
    if as_json:
        data = {"message": "ready", **_connection_data(server), "api_key": FIRST_API_KEY}
        more = {"control_token": shown_token, "ignored": server.sandbox.ignored}
        return f"{json.dumps({**data, **{name: value for name, value in more.items() if value}})}\n"
    lines = [
        *_first_lines(server),
        *_tls_lines(server),
        *_stand_in_lines(stands_in_for),
        *(_network_lines(server, host, shown_token) if shown_token is not None else ()),
        *_project_lines(server),
        *(f"Ignored: {sentence}." for sentence in server.sandbox.ignored),
    ]
    return "".join(f"{line}\n" for line in [*lines, ""])


def describe_standby(server: Server, *, as_json: bool) -> str:
    """Describe a server that waits for the state of another."""
    sentence = (
        f"Standby on {server.local_url}: another server has the state, and this one takes over when it ends."
    )
    data = {"message": "standby", "listening": server.local_url, "pid": os.getpid()}
    return f"{json.dumps(data) if as_json else sentence}\n"


def remove_ready(path: Path | None) -> None:
    """Remove a ready file."""
    if path is None:
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        fail(f"--ready-file: cannot replace {path}: {str(error.strerror).lower()}")


@contextmanager
def ready_file(path: Path | None, server: Server) -> Iterator[None]:
    """Write the ready file, and remove it if the server fails."""
    try:
        if path is not None:
            _write_ready(path, server)
        yield
    except BaseException:
        remove_ready(path)
        raise


def _write_ready(path: Path, server: Server) -> None:
    """Write the ready file atomically, because a waiting program may read the file at once."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(json.dumps(_connection_data(server)))
        part.replace(path)
    except OSError as error:
        server.stop()
        fail(f"--ready-file: cannot write {path}: {error.strerror}")


def _connection_data(server: Server) -> dict[str, Any]:
    """Return the connection data for programs; ``listening`` is the local address, ``url`` may be public."""
    data = {
        "url": server.url,
        "listening": server.local_url,
        "pid": os.getpid(),
        "version": __version__,
    }
    authority = server.security.authority
    return {**data, "ca_file": str(authority)} if authority is not None else data


def _first_lines(server: Server) -> Iterator[str]:
    yield f"Payment sandbox {__version__} on {server.url}, API key {FIRST_API_KEY}. Try:"
    yield ""
    trusted = f"--cacert {server.security.authority} " if server.security.authority is not None else ""
    address = f"{server.url}/v1/orders/"
    yield f"  curl {trusted}-u {FIRST_API_KEY}: {address} -H 'Content-Type: application/json' \\"
    yield f"    -d '{FIRST_ORDER}'"
    yield ""
    yield f"Then open {server.url}/ in a browser: the dashboard shows the order and leads to its payment."
    yield f"Documentation: {server.url}/docs/"


def _tls_lines(server: Server) -> Iterator[str]:
    if server.security.tls is None:
        return
    yield f"The port serves https, and no http: {url_of('localhost', server.port, 'https')}/"
    authority = server.security.authority
    if authority is not None:
        yield f"Let your browser and your shop trust {authority}; see {server.url}/docs/operation/#https."
        yield f"In a Python shop: export SSL_CERT_FILE={authority} REQUESTS_CA_BUNDLE={authority}"


def _stand_in_lines(names: Sequence[str]) -> Iterator[str]:
    """Yield the commands to redirect a shop from the provider to the sandbox and back."""
    for name in names:
        line = f"127.0.0.1 {name}"
        pattern = line.replace(".", r"\.")
        yield f"The sandbox stands in for {name}. To redirect a shop on this machine, and to undo that:"
        yield f"  echo '{line}' | sudo tee -a /etc/hosts"
        yield f"  sudo sed -i '/^{pattern}$/d' /etc/hosts"


def _network_lines(server: Server, host: str, token: str) -> Iterator[str]:
    scheme = server.url.partition(":")[0]
    addresses = own_addresses() if host in ALL_INTERFACES else [host]
    reachable = [each for each in addresses if ":" in host or ":" not in each]
    if reachable:  # 0.0.0.0 covers no IPv6 address
        urls = ", ".join(url_of(each, server.port, scheme) for each in reachable)
        yield f"Other devices in your network reach the sandbox at {urls};"
        yield "add --allow-host NAME for a host name of your own."
    yield f"What a server that others can reach needs in front: {server.url}/docs/security/"
    yield f"Links to pages and QR codes use {server.url}"
    yield "The dashboard asks for the API key, or, to create projects, for the control token:"
    yield f"  control token {token}"


def _project_lines(server: Server) -> Iterator[str]:
    projects = server.registry.all()
    if len(projects) > 1:
        yield f"Projects: {', '.join(project.settings.name or project.project_id for project in projects)}."
    about = [_webhook_line(project.settings, is_alone=len(projects) == 1) for project in projects]
    yield from filter(None, about)
    if allowed_hosts := server.sandbox.services.courier.allowed_hosts:
        yield f"Webhooks go only to {', '.join(allowed_hosts)}; other hosts get none."
    if not any(about):
        yield "Webhooks go to the webhook_url of each order; serve --webhook-url URL sets one for all."


def _webhook_line(settings: Settings, *, is_alone: bool) -> str | None:
    """Return a sentence on the webhook address of a project; None if only orders set an address."""
    name = "" if is_alone else f" of {settings.name}"
    if settings.forward_to is not None:
        return f"Webhooks{name} wait for payment-sandbox listen, which forwards them to {settings.forward_to}"
    return f"Webhooks{name} go to {settings.webhook_url}" if settings.webhook_url is not None else None


def check_options(host: str, options: Mapping[str, Any]) -> None:
    """Refuse invalid addresses, host names and times."""
    public_url = options["public_url"]
    try:
        Start.parse(options["clock"])
    except Invalid as invalid:
        fail(f"--{invalid}")
    if public_url is not None and not is_server_url(public_url):
        fail(f"--public-url: {public_url!r} is not a URL such as http://pay.example:8080")
    if options["webhook_url"] is not None:
        try:
            read_settings({"webhook_url": options["webhook_url"]}, Settings())
        except Invalid as invalid:
            message = invalid.violations[0].message
            fail(f"--webhook-url: {options['webhook_url']!r} {message.replace(*EXAMPLE_URLS)}")
    if HOST_NAME.fullmatch(host) is None:
        fail(f"--host: {host!r} is not an address such as 127.0.0.1 or 0.0.0.0, without scheme and port")
    for option, key, example in HOST_OPTIONS:
        for name in options[key]:
            if HOST_NAME.fullmatch(name) is None or (option == STAND_IN and name in LOOPBACK):
                fail(f"{option}: {name!r} is not a host name such as {example}, without scheme and port")


def start_server(host: str, port: int, **options: Any) -> Server:
    """Build and start the server; exit with a sentence if that is impossible."""
    load_aiohttp()
    raise_open_files_limit()
    options["security"] = _security_settings(host, options)
    try:
        server = build(ServerConfig(host=host, port=port, **options))
    except PortInUse as refused:
        fail(_add_occupant(str(refused), host, port))
    except (StateRefused, NotStored) as refused:
        fail(str(refused))
    except Invalid as invalid:
        fail(*(violation.as_line() for violation in invalid.violations))
    bound_pauses()
    server.start()
    return server


def load_aiohttp() -> None:
    """Load aiohttp without its client, which takes 70 of the 350 milliseconds to the first answer."""
    spec = find_spec("aiohttp")
    if spec is not None and spec.name not in sys.modules:
        package = sys.modules[spec.name] = module_from_spec(spec)
        package.__dict__["__version__"] = ""  # for a header that the front replaces
        load_module("aiohttp.web")


def raise_open_files_limit() -> None:
    """Raise the open-file limit of this process as far as the system allows, up to what a server can use."""
    if sys.platform == "win32":  # which has no limit
        return
    with suppress(ValueError, OSError):  # some systems refuse theirs
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = OPEN_FILES_LIMIT if hard == resource.RLIM_INFINITY else min(OPEN_FILES_LIMIT, hard)
        if limit > soft != resource.RLIM_INFINITY:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def bound_pauses() -> None:
    """Bound how long a thread or the garbage collector can keep the event loop from running.

    A full collection of 100,000 orders would take half a second. Here it scans only what is new since the
    last one, as it skips what has survived one. Reference counts still free all of that: nothing that lives
    long is part of a cycle.
    """
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    gc.callbacks.append(_skip_survivors)
    gc.freeze()
    gc.enable()


def _skip_survivors(phase: str, info: Mapping[str, int]) -> None:
    if phase == "stop" and info["generation"] == len(COLLECTION_THRESHOLDS) - 1:
        gc.freeze()


def _add_occupant(refused: str, host: str, port: int) -> str:
    """Add a sentence to the refusal of a port in use if a sandbox occupies the port."""
    for scheme in ("http", "https"):
        url = url_of(binding.LOOPBACK if host in ALL_INTERFACES else host, port, scheme)
        with suppress(Exception), direct_session() as session:  # any failure means that it is no sandbox
            version = session.get(f"{url}/health/", verify=False, timeout=1.0).json()["version"]
            return f"{refused}; a payment sandbox, version {version}, already runs at {url}/"
    return refused


def _security_settings(host: str, options: dict[str, Any]) -> Security:
    """Return the TLS settings of the server and its webhooks; remove their options."""
    serves_tls, receivers, is_insecure = map(options.pop, ("tls", "webhook_ca", "webhook_insecure"))
    trusted = trust_of_option("--webhook-ca", receivers, is_insecure=is_insecure)
    if not serves_tls:
        return Security(trusted_receivers=trusted)
    public_host = urlsplit(options["public_url"] or "").hostname
    names = tls.certificate_names(host, public_host, options["allow_hosts"])
    try:
        return Security(tls.create_own_context(names), trusted, tls.authority_file())
    except CertificateRefused as refused:
        fail(str(refused))


def warm_up(server: Server) -> None:
    """Load the modules that the first page and the first webhook need, which collections then skip."""
    for _ in described_routes(server.app):
        pass
    load_module("requests")  # sends webhooks
    gc.freeze()
