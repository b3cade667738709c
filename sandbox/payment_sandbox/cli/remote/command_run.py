"""Common parts of the commands for a running server: declaration, address, key, output, one-line errors.

A command is a function: its docstring is the help, positional parameters are arguments, and keyword-only ones
are options. A type may be ``Annotated`` with a sentence, which is the help of an option or the metavar of an
argument, and with a type of click.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce, wraps
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

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
START_ADVICE: Final = "; start one with payment-sandbox serve, or set --url or SANDBOX_URL"
ADVICE: Final = {
    "is not trusted": "; trust its certificate with --ca FILE or SANDBOX_CA",
    "serves plain http": "; write http://, or start it with --tls",
    "no server listens": START_ADVICE,
    "cannot be resolved": START_ADVICE,
    "cannot be reached": START_ADVICE,
}
FAULT_STATUSES: Final = (429, 500, 502, 503, 504)
COMMON_OPTIONS: Final = ("url", "key", "token", "ca")
TOKEN_COMMANDS: Final = ("projects", "create", "review")
UNAUTHORIZED: Final = 401
ORDER: Final = "order_id"  # the full id is found from a prefix or ``last``
FILE: Final = click.Path(path_type=Path, dir_okay=False)
TYPES: Final[Mapping[Any, Any]] = {bool: bool, int: int, float: float, Path: FILE}
COMMANDS: Final[list[click.Command]] = []

Document = TypeVar("Document")
Row = Sequence[object]


class CommandRun:
    """One run of a command, with its client and output format."""

    def __init__(self, sandbox: SandboxClient, *, as_json: bool) -> None:
        self.sandbox = sandbox
        self.as_json = as_json
        self.file: Path | None = None

    def show(self, answer: Document, readable: str | Callable[[Document], str]) -> None:
        """Print a response as JSON, or without control characters as text, by a template or function."""
        try:
            to_text = readable.format_map if isinstance(readable, str) else readable
            text = json.dumps(answer, indent=2) if self.as_json else to_text(_printable(answer))
        except (KeyError, TypeError, AttributeError):
            fail(f"the server at {self.sandbox.base_url} is not a payment sandbox")
        say(*text.split("\n"))

    def table(self, answer: Any, columns: str, empty: str) -> None:
        """Print a list as a table or as JSON; each column is the path of a value, or ``head=path``."""
        heads = [column.partition("=")[0] for column in columns.split()]
        paths = [column.rpartition("=")[2].split(".") for column in columns.split()]

        def rows(shown: Any) -> list[Row]:
            items = shown["items"] if isinstance(shown, dict) else shown
            return [[reduce(_part, path, item) for path in paths] for item in items]

        self.show(answer, lambda shown: format_table(rows(shown), heads, empty))

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
        if text == NEWEST and not matching:
            fail("there are no orders yet; create one with payment-sandbox trigger paid")
        if len(matching) != 1:
            problem = "several orders begin" if matching else "no order begins"
            fail(
                f"{problem} with {text!r}; give more of the id, or {NEWEST}; payment-sandbox orders lists all"
            )
        return matching[0]


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _printable(answer: Any) -> Any:
    """Return a response without control characters, for safe output on a terminal."""
    if isinstance(answer, str):
        return make_printable(answer)
    if isinstance(answer, Mapping):
        return {_printable(name): _printable(value) for name, value in answer.items()}
    return [_printable(item) for item in answer] if isinstance(answer, list | tuple) else answer


def remote(
    example: str,
    *,
    call: Callable[..., Any] | None = None,
    parent: click.Group | None = None,
    kind: type[click.Command] = click.Command,
) -> Callable[[Any], Any]:
    """Declare a command for a running server; its function receives a ``CommandRun`` and the values.

    With a call of the client, the command also has the optional arguments of the call. The function of a
    group runs if the user names no command of the group.
    """

    def declare(function: Callable[..., None]) -> click.Command:
        options = _common_options(needs_token=function.__name__ in TOKEN_COMMANDS)
        more: dict[str, Any] = {"invoke_without_command": True} if kind is Group else {}
        command = kind(
            function.__name__,
            callback=_run(function),
            params=[*_parameters(function, call), *options],
            help=getdoc(function),
            epilog=f"Example: payment-sandbox {example}",
            **more,
        )
        if parent is None:
            COMMANDS.append(command)
        else:
            parent.add_command(command)
        return command

    return declare


def _run(function: Callable[..., None]) -> Callable[..., None]:
    @wraps(function)
    def run(as_json: bool, address: str | None = None, **given: Any) -> None:
        context = click.get_current_context()
        common = [_option_value(context, name, given.pop(name)) for name in COMMON_OPTIONS]
        if context.invoked_subcommand is not None:
            return
        with client(address or common[0], *common[1:]) as sandbox:
            call = CommandRun(sandbox, as_json=as_json)
            try:
                if given.get(ORDER) is not None:
                    given[ORDER] = call.order_id(given[ORDER])
                function(call, **given)
            except SandboxError as refused:
                fail(*_refusal_lines(refused, call.file))

    return run


def _option_value(context: click.Context, name: str, value: Any) -> Any:
    """Return an option's value; an option before a group's command overrides the environment."""
    parent = context.parent
    is_explicit = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    if is_explicit or parent is None or parent.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
        return value
    return parent.params[name]


def _common_options(*, needs_token: bool) -> list[click.Parameter]:
    """Return the common options; the help shows the control token only for commands that need it."""
    token_help = "The server's control token, to list or create projects."
    ca_help = "Certificates to trust for https; by default those of serve --tls on this computer."
    return [
        click.Option(["--url"], envvar="SANDBOX_URL", help=f"The server; {URL_DEFAULT} by default."),
        click.Option(
            ["--key"], envvar=KEY_VARIABLE, help=f"The project's API key; {KEY_DEFAULT} by default."
        ),
        click.Option(
            ["--control-token", "token"], envvar=TOKEN_VARIABLE, hidden=not needs_token, help=token_help
        ),
        click.Option(["--ca"], envvar="SANDBOX_CA", type=FILE, help=ca_help),
        click.Option(["--json", "as_json"], is_flag=True, help="Print the response as JSON."),
    ]


def _parameters(function: Callable[..., None], call: Callable[..., Any] | None) -> Iterator[click.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    for stated in list(signature(function).parameters.values())[1:]:
        if stated.kind is not Parameter.VAR_KEYWORD:
            yield _parameter(stated, hints[stated.name], is_option=stated.kind is Parameter.KEYWORD_ONLY)
    if call is not None:
        hints_of_call = get_type_hints(call, include_extras=True)
        for stated in signature(call).parameters.values():
            if stated.name not in hints and stated.default is not Parameter.empty:
                yield _parameter(stated, hints_of_call[stated.name], is_option=True)


def _split(hint: Any) -> tuple[Any, list[Any]]:
    """Return the first type of a hint, and the notes of all its ``Annotated``."""
    notes: list[Any] = []
    while get_origin(hint) in (Annotated, Union, UnionType):
        notes += hint.__metadata__ if get_origin(hint) is Annotated else ()
        hint = get_args(hint)[0]
    return hint, notes


def _parameter(stated: Parameter, stated_hint: Any, *, is_option: bool) -> click.Parameter:
    hint, notes = _split(stated_hint)
    about = next((note for note in notes if isinstance(note, str)), None)
    kind = click.Choice(get_args(hint)) if get_origin(hint) is Literal else TYPES.get(hint, str)
    kind = next((note for note in notes if isinstance(note, click.ParamType)), kind)
    details: dict[str, Any] = {"type": kind, "required": stated.default is Parameter.empty}
    if stated.default not in (Parameter.empty, None, False, ()):
        details["default"] = stated.default
    if not is_option:
        count = -1 if get_origin(hint) is tuple else 1
        return click.Argument([stated.name], nargs=count, metavar=about, **details)
    flag = f"--{stated.name.removesuffix('_seconds').strip('_').replace('_', '-')}"
    names = ["--order", flag, ORDER] if stated.name == ORDER else [flag, stated.name]
    details |= {"is_flag": True} if hint is bool else {"show_default": "default" in details}
    return click.Option(names, help=about, **details)


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
        advice = next((ADVICE[words] for words in ADVICE if words in str(error)), "")
        fail(f"no sandbox answers at {url}: {error}{advice}")
    finally:
        sandbox.close()


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


def _refusal_lines(refused: SandboxError, file: Path | None) -> list[str]:
    """Return the refusal with the remedy, or one line for each mistake in a file."""
    located = [violation for violation in refused.violations if violation.line is not None]
    if file is not None and located:
        return [violation.as_line_in(str(file)) for violation in located]
    if refused.is_foreign and refused.status != UNAUTHORIZED:
        return [f"{refused.value}; check --url and SANDBOX_URL"]
    advice = ""
    if refused.status == UNAUTHORIZED:
        advice = "; see --key and SANDBOX_API_KEY, and --control-token"
    elif refused.status in FAULT_STATUSES:
        advice = "; payment-sandbox faults and scenario show the cause"
    elif refused.allowed and "possible now" not in refused.value:
        advice = f"; possible now: {', '.join(refused.allowed)}"
    return [f"{refused.status}: {refused.value}{advice}"]


def format_table(rows: Sequence[Row], heads: Row, empty: str) -> str:
    """Format a table with uncut cells, so that identifiers can be copied."""
    if not rows:
        return empty
    table = [[str(head).upper() for head in heads], *([format_value(cell) for cell in row] for row in rows)]
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
