"""The MCP server: agents get the calls of the control API as tools, ``make_order`` and ``docs``."""

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from payment_sandbox.cli.options import fail
from payment_sandbox.cli.remote.declaring import KEY_DEFAULT, KEY_VARIABLE, TOKEN_VARIABLE, client
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.extensions import MCP_EXTRA, NotInstalled
from payment_sandbox.forms import Cents, Choice, Form, FormPart, Text, read
from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.loading import lazy
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.orders.refusals import Invalid, Unknown
from payment_sandbox.projects.clock import FROZEN
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    import anyio
    import mcp_types as types
    from mcp import server as sdk
    from mcp.server import stdio

    from payment_sandbox import app
    from payment_sandbox.ui.docs import sections
    from payment_sandbox.web import control
    from payment_sandbox.web.control.declaring import ControlCommand
else:
    anyio, types = lazy("anyio"), lazy("mcp_types")
    sdk, stdio = lazy("mcp.server"), lazy("mcp.server.stdio")
    app, control = lazy("payment_sandbox.app"), lazy("payment_sandbox.web.control")
    sections = lazy("payment_sandbox.ui.docs.sections")

INSTRUCTIONS: Final = (
    "A sandbox of the payment-orders API runs at {url}. Give the shop under test this address and the API "
    "key {key} (HTTP Basic: the key is the user name), and let it create orders, or call make_order. Advance "
    "the clock instead of waiting. The page agents of docs lists the steps of an integration."
)
PROBLEMS: Final = (SandboxError, TriggerImpossible, Invalid, Unknown, OSError, TypeError, ValueError)


class MakeOrderForm(Form):
    """Create an order in a state that shops have to handle, or bring an order of the shop to this state."""

    name = Choice(tuple(RECIPES), required=True, about="The state; bank transfers need mode live.")
    order_id = Text(about="An order of the shop; without it, a new order is created.")
    amount = Cents(about="The cents of a new order; 1295 by default.")


class DocsForm(Form):
    """Read a page of the documentation, or a section of it, such as mistakes#read-the-order."""

    reference = Text(required=True, about="The page, or the page and the heading; begin with agents.")


def _form_of(made: "ControlCommand") -> type[Form]:
    """Return the form of a call's arguments, as the client has them."""
    document = made.document
    fields = {
        each.name: FormPart(document.form, required=True)
        if document is not None and document in each.notes
        else each.field()
        for each in made.shown
    }
    return type(made.name, (Form,), {"__doc__": made.about, **fields})


def _make_order(sandbox: SandboxClient, name: str, order_id: str | None = None, **order: Any) -> Any:
    return trigger(sandbox, name, order_id, **order)


class Tools:
    """The tools by name: the form of the arguments, and the function that gets them."""

    def __init__(self, sandbox: SandboxClient) -> None:
        self.by_name: dict[str, tuple[type[Form], Callable[..., Any]]] = {
            each.name: (_form_of(each), getattr(sandbox, each.name))
            for each in control.COMMANDS.values()
            if not each.is_stream
        }
        for name, form, run in (
            ("make_order", MakeOrderForm, partial(_make_order, sandbox)),
            ("docs", DocsForm, sections.section),
        ):
            self.by_name[name] = (form, lambda form=form, run=run, **given: run(**read(form(), given)))

    async def list(self, context: Any, params: Any) -> "types.ListToolsResult":
        """List the tools with the schemas of their arguments."""
        tools = (
            types.Tool(name=name, description=getdoc(form), input_schema=json_schema(form, {}))
            for name, (form, _) in self.by_name.items()
        )
        return types.ListToolsResult(tools=list(tools))

    async def call(self, context: Any, params: "types.CallToolRequestParams") -> "types.CallToolResult":
        """Call a tool on another thread, because an advance or a wait takes its time."""
        text, is_error = await anyio.to_thread.run_sync(self._run, params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)

    def _run(self, name: str, given: dict[str, Any]) -> tuple[str, bool]:
        """Return the answer of a tool or the problem with a call, and whether it is a problem."""
        if name not in self.by_name:
            return f"there is no tool {name!r}; the tools are: {', '.join(self.by_name)}", True
        try:
            answer = self.by_name[name][1](**given)
        except PROBLEMS as problem:
            return str(problem), True
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False), False


@click.command(epilog="Example: payment-sandbox mcp")
def mcp() -> None:
    """Offer the sandbox as tools to coding agents, over standard input and output."""
    try:
        create_server = sdk.Server
    except ModuleNotFoundError:
        fail(str(NotInstalled("mcp", MCP_EXTRA)))
    url, key = os.environ.get("SANDBOX_URL", ""), os.environ.get(KEY_VARIABLE) or KEY_DEFAULT
    with ExitStack() as stack:
        if not url:
            own = app.build(ServerConfig(clock=FROZEN, webhooks_only_local=True))
            url, key = stack.enter_context(own).url, KEY_DEFAULT
        ca = Path(os.environ["SANDBOX_CA"]) if os.environ.get("SANDBOX_CA") else None
        tools = Tools(stack.enter_context(client(url, key, os.environ.get(TOKEN_VARIABLE), ca)))
        about = INSTRUCTIONS.format(url=url, key=key)
        anyio.run(
            _serve,
            create_server(
                "payment-sandbox",
                version=__version__,
                instructions=about,
                on_list_tools=tools.list,
                on_call_tool=tools.call,
            ),
        )


async def _serve(offered: "sdk.Server") -> None:
    async with stdio.stdio_server() as (incoming, outgoing):
        await offered.run(incoming, outgoing, offered.create_initialization_options())
