"""Declares the commands for a running server: arguments, help, call and output follow from a function.

The first parameter of the function is the client, so the client's own methods are such functions, too. The
docstring is the help. Positional parameters are arguments, unless their default is None; others are options.
``Annotated`` adds a sentence, the help of an option, or a text in brackets, the metavar of an argument.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from inspect import Parameter, getdoc, signature
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

import click

from payment_sandbox.cli.options import fail, is_server_url, say
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.kernel.patterns import make_printable
from payment_sandbox.serving import sessions, tls
from payment_sandbox.serving.sessions import requests

URL_DEFAULT: Final = "http://127.0.0.1:8080"
KEY_DEFAULT: Final = "sandbox-key"
KEY_VARIABLE: Final = "SANDBOX_API_KEY"
TOKEN_VARIABLE: Final = "SANDBOX_CONTROL_TOKEN"
UNAUTHORIZED: Final = 401
TIMED_OUT: Final = 408
ID_LENGTH: Final = 36
NEWEST: Final = "last"
ALIASES: Final = {"order_id": ["--order"]}
ORDER_IDS: Final = ("order_id", "webhook")
RULE_IDS: Final = re.compile(r" \([A-Z]{3}-\d\d[^)]*\)")
FILE: Final = click.Path(path_type=Path, dir_okay=False)
COMMON: Final = (
    click.Option(["--url"], envvar="SANDBOX_URL", help=f"The server; {URL_DEFAULT} by default."),
    click.Option(["--key"], envvar=KEY_VARIABLE, help=f"The project's API key; {KEY_DEFAULT} by default."),
    click.Option(["--control-token"], envvar=TOKEN_VARIABLE, help="The token to list or create projects."),
    click.Option(["--ca"], envvar="SANDBOX_CA", type=FILE, help="Certificates to trust for https."),
    click.Option(["--json", "as_json"], is_flag=True, help="Print the response as JSON."),
)
COMMANDS: Final[list[click.Command]] = []
Function = TypeVar("Function", bound=Callable[..., Any])
Shows = str | Callable[[Any], str]
"""How an answer is shown: by a template, by a function that returns the text, or, if empty, as JSON."""


def _read_json(file: str) -> Any:
    try:
        return json.loads(Path(file).read_bytes())
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")
    except (ValueError, RecursionError) as error:
        fail(f"{file} is not JSON: {error}")


TYPES: Final[Mapping[Any, Any]] = {bool: bool, int: int, float: float, Path: FILE, Mapping: _read_json}


def remote(example: str, shows: Shows = "", **defaults: object) -> Callable[[Function], Function]:
    """Declare a command for a running server, which shows what its function returns."""

    def declare(function: Function) -> Function:
        def run(
            url: str, key: str, control_token: str, ca: Path, as_json: bool, address: str = "", **given: Any
        ) -> None:
            with client(address or url, key, control_token, ca) as sandbox:
                for name in ORDER_IDS:
                    if isinstance(given.get(name), str):
                        given[name] = find_order(sandbox, given[name])
                answer = function(sandbox, **given)
                if answer is not None:
                    show(answer, shows)

        command = click.Command(function.__name__, callback=run, params=[*COMMON])
        command.params[:0] = _parameters(function, defaults)
        command.help = RULE_IDS.sub("", getdoc(function) or "")
        command.epilog = f"Example: payment-sandbox {example}"
        COMMANDS.append(command)
        return function

    return declare


def _parameters(function: Callable[..., Any], defaults: Mapping[str, object]) -> Iterator[click.Parameter]:
    for stated in list(signature(function).parameters.values())[1:]:
        hint, about = stated.annotation, ""
        while get_origin(hint) in (Annotated, Union, UnionType):
            about = about or next(iter(getattr(hint, "__metadata__", ())), "")
            hint = get_args(hint)[0]
        is_choice = get_origin(hint) is Literal
        kind = click.Choice(get_args(hint)) if is_choice else TYPES.get(get_origin(hint) or hint, str)
        details: dict[str, Any] = {"type": kind, "required": stated.default is Parameter.empty}
        default = defaults.get(stated.name, stated.default)
        if default not in (Parameter.empty, None, False, "", ()):
            details["default"] = default
        if stated.kind is not Parameter.KEYWORD_ONLY and stated.default is not None:
            count, metavar = -1 if get_origin(hint) is tuple else 1, about if about[:1] == "[" else None
            yield click.Argument([stated.name], nargs=count, metavar=metavar, **details)
            continue
        flag = f"--{stated.name.removesuffix('_seconds').strip('_').replace('_', '-')}"
        details |= {"is_flag": True} if hint is bool else {"show_default": "default" in details}
        yield click.Option([*ALIASES.get(stated.name, ()), flag, stated.name], help=about, **details)


@contextmanager
def client(
    address: str | None, key: str | None, token: str | None, ca: Path | None
) -> Iterator[SandboxClient]:
    """Create a client; on a refusal or a network error, exit with one line."""
    url = with_scheme((address or URL_DEFAULT).rstrip("/"))
    if not is_server_url(url):
        fail(f"{url!r} is not an address such as {URL_DEFAULT}; see --url and SANDBOX_URL")
    session = sessions.direct_session()
    if url.startswith("https:"):
        _trust_authority(session, ca)
    sandbox = SandboxClient(url, key or KEY_DEFAULT, session=session, control_token=token)
    try:
        yield sandbox
    except SandboxError as refused:
        say(*(f"payment-sandbox: {line}" for line in _refusal_lines(refused)), to_stderr=True)
        sys.exit(1 if refused.status == TIMED_OUT else 2)
    except requests.exceptions.JSONDecodeError:
        fail(f"the server at {url} is not a payment sandbox")
    except requests.RequestException as error:
        start = "start one with payment-sandbox serve, or set --url or SANDBOX_URL"
        is_untrusted = "is not trusted" in str(error)
        advice = "trust its certificate with --ca FILE or SANDBOX_CA" if is_untrusted else start
        fail(f"no sandbox answers at {url}: {error}; {advice}")
    finally:
        sandbox.close()


def _trust_authority(session: "requests.Session", ca: Path | None) -> None:
    """Trust the certificates of a file, or those of serve --tls on this computer."""
    file = ca or tls.authority_file()
    if ca is not None or file.is_file():
        try:
            adapter, many = requests.adapters.HTTPAdapter(), sessions.CONNECTIONS_MAX
            adapter.init_poolmanager(many, many, ssl_context=sessions.trusting_context(file))
            session.mount("https://", adapter)
            session.verify = str(file)  # requests adds the file to the context
        except sessions.CertificateRefused as refused:
            fail(f"--ca: {refused}")


def with_scheme(address: str) -> str:
    """Return an address as a URL."""
    return address if "://" in address else f"http://{address}"


def _refusal_lines(refused: SandboxError) -> list[str]:
    """Return the refusal with the remedy, or one line for each mistake in a file."""
    located = [violation.as_line() for violation in refused.violations if violation.line is not None]
    advice = ""
    if refused.status == UNAUTHORIZED:
        advice = "; see --key and SANDBOX_API_KEY, and --control-token"
    elif refused.is_foreign:
        advice = "; check --url and SANDBOX_URL"
    elif refused.allowed and "possible now" not in refused.value:
        advice = f"; possible now: {', '.join(refused.allowed)}"
    return located or [f"{refused.status}: {refused.value}{advice}"]


def find_order(sandbox: SandboxClient, text: str) -> str:
    """Return the full id of an order from a prefix or ``last``."""
    if len(text) >= ID_LENGTH:
        return text
    orders = sandbox.orders(limit=1) if text == NEWEST else sandbox.orders(text=text)
    matching = [each["id"] for each in orders if text == NEWEST or each["id"].startswith(text)]
    if text == NEWEST and not matching:
        fail("there are no orders yet; create one with payment-sandbox trigger paid")
    if len(matching) != 1:
        problem = "several orders begin" if matching else "no order begins"
        fail(f"{problem} with {text!r}; give more of the id, or {NEWEST}; payment-sandbox orders lists all")
    return matching[0]


def is_for_programs() -> bool:
    """Return whether the current command prints JSON."""
    return bool(click.get_current_context().params["as_json"])


def show(answer: Any, shows: Shows = "") -> None:
    """Print an answer without control characters, by a template or a function, or else as JSON."""
    to_text = shows.format_map if isinstance(shows, str) else shows
    try:
        is_json = not shows or is_for_programs()
        text = json.dumps(answer, indent=2) if is_json else to_text(_printable(answer))
    except (KeyError, TypeError, AttributeError):
        fail("the server is not a payment sandbox; check --url and SANDBOX_URL")
    say(*text.split("\n"))


def _printable(answer: Any) -> Any:
    if isinstance(answer, str):
        return make_printable(answer)
    if isinstance(answer, Mapping):
        return {_printable(name): _printable(value) for name, value in answer.items()}
    return [_printable(item) for item in answer] if isinstance(answer, list | tuple) else answer


def table(records: Iterable[Mapping[str, Any]], columns: str, empty: str = "") -> str:
    """Format records, with uncut cells to copy; a column is the path of a value, or ``head=path``."""
    heads = [column.partition("=")[0].upper() for column in columns.split()]
    paths = [column.rpartition("=")[2].split(".") for column in columns.split()]
    rows = [[format_value(reduce(_part, path, each)) for path in paths] for each in records]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *rows)]
    return "\n".join(lines) if rows else empty


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def format_value(value: object) -> str:
    """Format a value on one line."""
    if isinstance(value, Mapping):
        return " ".join(f"{name}={format_value(part)}" for name, part in value.items())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value) if value is not None else ""
