"""Common parts of the commands for a running server: address, key, output, one-line errors."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from payment_sandbox.cli.options import Group, fail, is_server_url, say
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.loading import lazy
from payment_sandbox.serving import sessions

if TYPE_CHECKING:
    import requests

    from payment_sandbox.serving import tls
else:
    requests = lazy("requests")
    tls = lazy("payment_sandbox.serving.tls")

URL_DEFAULT: Final = "http://127.0.0.1:8080"
KEY_DEFAULT: Final = "sandbox-key"
ID_LENGTH: Final = 36
NEWEST: Final = "last"
KEY_VARIABLE: Final = "SANDBOX_API_KEY"
TOKEN_VARIABLE: Final = "SANDBOX_CONTROL_TOKEN"
START_ADVICE: Final = "start one with payment-sandbox serve, or set --url or SANDBOX_URL"
ADVICE_BY_PROBLEM: Final = {
    "is not trusted": "trust its certificate with --ca FILE or SANDBOX_CA",
    "serves plain http": "write http://, or start it with --tls",
    "no server listens": START_ADVICE,
    "cannot be resolved": START_ADVICE,
    "cannot be reached": START_ADVICE,
}
FAULT_STATUSES: Final = (429, 500, 502, 503, 504)
COMMON_OPTIONS: Final = ("url", "key", "token", "ca")
TOKEN_COMMANDS: Final = ("projects", "create", "prune", "replay", "review")
UNAUTHORIZED: Final = 401

Document = TypeVar("Document")
Row = Sequence[object]


class CommandRun:
    """One run of a command, with its client and output format."""

    def __init__(self, sandbox: SandboxClient, *, as_json: bool) -> None:
        self.sandbox = sandbox
        self.as_json = as_json
        self.file: Path | None = None

    def show(self, answer: Document, readable: Callable[[Document], str]) -> None:
        """Print a response as text or as JSON; ``readable`` formats a copy without control characters."""
        try:
            text = json.dumps(answer, indent=2) if self.as_json else readable(_printable(answer))
        except (KeyError, TypeError, AttributeError):
            fail(f"the server at {self.sandbox.base_url} is not a payment sandbox")
        say(*text.split("\n"))

    def table(
        self, answer: Document, rows: Callable[[Document], Iterable[Row]], headers: Row, empty: str
    ) -> None:
        """Print a response as a table or as JSON; ``rows`` reads a copy without control characters."""
        self.show(answer, lambda safe: format_table(rows(safe), headers, empty))

    def read(self, file: Path) -> bytes:
        """Read a file to send; later errors name positions in the file."""
        self.file = file
        try:
            return file.read_bytes()
        except OSError as error:
            fail(f"cannot read {file}: {error.strerror}")

    def order_id(self, text: str) -> str:
        """Return the full id of an order from a prefix or ``last``."""
        if len(text) >= ID_LENGTH:
            return text
        if text == NEWEST:
            matching = [item["id"] for item in self.sandbox.orders(limit=1)]
        else:
            orders = self.sandbox.orders(text=text)
            matching = [item["id"] for item in orders if item["id"].startswith(text)]
        if len(matching) != 1:
            fail(_unknown_order(text, len(matching)))
        return matching[0]


def _printable(answer: Any) -> Any:
    """Return a response without control characters, for safe output on a terminal."""
    if isinstance(answer, str):
        return make_printable(answer)
    if isinstance(answer, Mapping):
        return {_printable(name): _printable(value) for name, value in answer.items()}
    return [_printable(item) for item in answer] if isinstance(answer, list | tuple) else answer


def _unknown_order(text: str, matching: int) -> str:
    if text == NEWEST:
        return "there are no orders yet; create one with payment-sandbox trigger paid"
    problem = "several orders begin" if matching else "no order begins"
    return f"{problem} with {text!r}; give more of the id, or {NEWEST}; payment-sandbox orders lists all"


COMMANDS: Final[list[click.Command]] = []


def remote(name: str, *, example: str, parent: click.Group | None = None) -> Callable[[Any], Any]:
    """Declare a command for a running server, with the common options.

    The function receives a ``CommandRun`` and the command's own options.
    """

    def make(function: Callable[..., None]) -> click.Command:
        run = _add_options(_run_command(function), needs_token=name in TOKEN_COMMANDS)
        declare = click.command if parent is None else parent.command
        command: click.Command = declare(name, epilog=f"Example: payment-sandbox {example}")(run)
        if parent is None:
            COMMANDS.append(command)
        return command

    return make


def group(name: str, *, example: str) -> Callable[[Any], click.Group]:
    """Declare a group of commands; the function runs if the user names no command of the group."""

    def make(function: Callable[..., None]) -> click.Group:
        run_group = _run_command(function)

        @wraps(function)
        def run(**arguments: Any) -> None:
            if click.get_current_context().invoked_subcommand is None:
                run_group(**arguments)

        epilog = f"Example: payment-sandbox {example}"
        create_group = click.group(name, cls=Group, invoke_without_command=True, epilog=epilog)
        command: click.Group = create_group(_add_options(run, needs_token=name in TOKEN_COMMANDS))
        COMMANDS.append(command)
        return command

    return make


def _run_command(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def run(as_json: bool, address: str | None = None, **arguments: Any) -> None:
        context = click.get_current_context()
        url, key, token, ca = (_option_value(context, name, arguments.pop(name)) for name in COMMON_OPTIONS)
        with client(address or url, key, token, ca) as sandbox:
            call = CommandRun(sandbox, as_json=as_json)
            with report_errors(call):
                function(call, **arguments)

    return run


def _option_value(context: click.Context, name: str, value: Any) -> Any:
    """Return an option's value; an option before a group's command overrides the environment."""
    parent = context.parent
    is_explicit = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    if is_explicit or parent is None or parent.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
        return value
    return parent.params[name]


def _add_options(run: Any, *, needs_token: bool) -> Any:
    """Add the common options; the help shows the control token only for commands that need it."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the response as JSON."),
        click.option(
            "--ca",
            envvar="SANDBOX_CA",
            type=click.Path(path_type=Path, dir_okay=False),
            help="Certificates to trust for https; by default those of serve --tls on this computer.",
        ),
        click.option(
            "--control-token",
            "token",
            envvar=TOKEN_VARIABLE,
            hidden=not needs_token,
            help="The server's control token, to list or create projects.",
        ),
        click.option("--key", envvar=KEY_VARIABLE, help=f"The project's API key; {KEY_DEFAULT} by default."),
        click.option("--url", envvar="SANDBOX_URL", help=f"The server; {URL_DEFAULT} by default."),
    ):
        run = option(run)
    return run


@contextmanager
def client(
    address: str | None, key: str | None, token: str | None, ca: Path | None
) -> Iterator[SandboxClient]:
    """Create a client; on a network error, exit with one line."""
    url = (address or URL_DEFAULT).rstrip("/")
    url = url if "://" in url else f"http://{url}"
    if not is_server_url(url):
        fail(f"{url!r} is not an address such as {URL_DEFAULT}; see --url and SANDBOX_URL")
    sandbox = SandboxClient(
        url,
        key or KEY_DEFAULT,
        session=trust_authority(sessions.direct_session(), url, ca),
        control_token=token,
    )
    try:
        yield sandbox
    except requests.exceptions.JSONDecodeError:
        fail(f"the server at {url} is not a payment sandbox")
    except requests.RequestException as error:
        fail(f"no sandbox answers at {url}: {error}{_network_advice(str(error))}")
    finally:
        sandbox.close()


def _network_advice(problem: str) -> str:
    """Return the advice on a network error."""
    for words, advice in ADVICE_BY_PROBLEM.items():
        if words in problem:
            return f"; {advice}"
    return ""


def trust_authority(session: "requests.Session", url: str, ca: Path | None) -> "requests.Session":
    """Trust the certificates of a file, or those of serve --tls on this computer, for https."""
    if not url.startswith("https:"):
        return session
    file = ca or tls.authority_file()
    if ca is not None or file.is_file():
        try:
            sessions.trust(session, sessions.Trust.of(file), requests.adapters.HTTPAdapter())
        except tls.CertificateRefused as refused:
            fail(f"--ca: {refused}")
    return session


@contextmanager
def report_errors(call: CommandRun) -> Iterator[None]:
    """Exit with the server's refusal, on one line or on one line per mistake in a file."""
    try:
        yield
    except SandboxError as refused:
        fail(*_refusal_lines(refused, call.file))


def _refusal_lines(refused: SandboxError, file: Path | None) -> list[str]:
    located = [violation for violation in refused.violations if violation.line is not None]
    if file is not None and located:
        return [violation.as_line_in(str(file)) for violation in located]
    if refused.status == UNAUTHORIZED:
        return [f"{refused.status}: {refused.value}; see --key and SANDBOX_API_KEY, and --control-token"]
    if refused.is_foreign:
        return [f"{refused.value}; check --url and SANDBOX_URL"]
    return [f"{refused.status}: {refused.value}{_refusal_advice(refused)}"]


def _refusal_advice(refused: SandboxError) -> str:
    """Return the possible actions, or the command that shows the cause of the failure."""
    if refused.status in FAULT_STATUSES:
        return "; payment-sandbox faults and scenario show the cause"
    if refused.allowed and "possible now" not in refused.value:
        return f"; possible now: {', '.join(refused.allowed)}"
    return ""


def format_table(rows: Iterable[Row], headers: Row, empty: str) -> str:
    """Format a table with uncut cells, so that identifiers can be copied."""
    texts = [[format_value(cell) for cell in row] for row in rows]
    if not texts:
        return empty
    table = [[str(head).upper() for head in headers], *texts]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def format_value(value: object) -> str:
    """Format a value on one line, without control characters."""
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return make_printable(", ".join(value))
    return make_printable(value) if isinstance(value, str) else json.dumps(value)


def format_amount(item: Mapping[str, Any]) -> str:
    """Format an amount with its currency."""
    whole, cents = divmod(int(item["amount"]), 100)
    return f"{whole}.{cents:02} {item['currency']}"
