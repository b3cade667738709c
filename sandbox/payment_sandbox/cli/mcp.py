"""The MCP server: agents get the calls of the control API as tools, ``make_order`` and ``docs``."""

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from inspect import getdoc
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server import Server, stdio

from payment_sandbox import app
from payment_sandbox.cli.remote.declaring import KEY_DEFAULT, KEY_VARIABLE, TOKEN_VARIABLE, client
from payment_sandbox.client.client import SandboxClient
from payment_sandbox.client.errors import SandboxError
from payment_sandbox.client.triggers import TriggerImpossible, trigger
from payment_sandbox.forms import Cents, Choice, Form, FormPart, Text, read
from payment_sandbox.forms.schemas import json_schema
from payment_sandbox.operations.recipes import RECIPES
from payment_sandbox.orders.refusals import Invalid, Unknown
from payment_sandbox.projects.clock import FROZEN
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.ui.docs import sections
from payment_sandbox.version import __version__
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.control.declaring import ControlCommand

INSTRUCTIONS: Final = (
    "A sandbox of the payment-orders API runs at {url}. Give the shop under test this address and the API "
    "key {key} (HTTP Basic: the key is the user name), and let it create orders, or call make_order. Advance "
    "the clock instead of waiting. The page agents of docs lists the steps of an integration."
)
PROBLEMS: Final = (SandboxError, TriggerImpossible, Invalid, Unknown, OSError, TypeError, ValueError)
Tools = dict[str, tuple[type[Form], Callable[..., Any]]]
"""By name: the form of the arguments, and the function that gets them."""


class MakeOrderForm(Form):
    """Create an order in a state that shops have to handle, or bring an order of the shop to this state."""

    name = Choice(tuple(RECIPES), required=True, about="The state; bank transfers need mode live.")
    order_id = Text(about="An order of the shop; without it, a new order is created.")
    amount = Cents(about="The cents of a new order; 1295 by default.")


class DocsForm(Form):
    """Read a page of the documentation, or a section of it, such as mistakes#read-the-order."""

    reference = Text(required=True, about="The page, or the page and the heading; begin with agents.")


def _form_of(made: ControlCommand) -> type[Form]:
    """Return the form of a call's arguments, as the client has them."""
    document = made.document
    fields = {
        each.name: FormPart(document.form, required=True)
        if document is not None and document in each.notes
        else each.field()
        for each in made.shown
    }
    return type(made.name, (Form,), {"__doc__": made.about, **fields})


def _tools_of(sandbox: SandboxClient) -> Tools:
    def make_order(**given: Any) -> Any:
        order = read(MakeOrderForm(), given)
        return trigger(sandbox, order.pop("name"), order.pop("order_id", None), **order)

    def docs(**given: Any) -> str:
        return sections.section(**read(DocsForm(), given))

    calls = [each for each in COMMANDS.values() if not each.is_stream]
    tools: Tools = {each.name: (_form_of(each), getattr(sandbox, each.name)) for each in calls}
    return {**tools, "make_order": (MakeOrderForm, make_order), "docs": (DocsForm, docs)}


def _call(tools: Tools, name: str, given: dict[str, Any]) -> types.CallToolResult:
    """Return the answer of a tool, or the problem with a call."""
    text, is_error = f"there is no tool {name!r}; the tools are: {', '.join(tools)}", True
    if name in tools:
        try:
            answer = tools[name][1](**given)
            text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            is_error = False
        except PROBLEMS as problem:
            text = str(problem)
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def run() -> None:
    """Offer the tools for the project of the environment, or of a server of their own."""
    url, key = os.environ.get("SANDBOX_URL", ""), os.environ.get(KEY_VARIABLE) or KEY_DEFAULT
    with ExitStack() as stack:
        if not url:
            own = app.build(ServerConfig(clock=FROZEN, webhooks_only_local=True))
            url, key = stack.enter_context(own).url, KEY_DEFAULT
        ca = Path(os.environ["SANDBOX_CA"]) if os.environ.get("SANDBOX_CA") else None
        tools = _tools_of(stack.enter_context(client(url, key, os.environ.get(TOKEN_VARIABLE), ca)))
        anyio.run(_serve, tools, INSTRUCTIONS.format(url=url, key=key))


async def _serve(tools: Tools, instructions: str) -> None:
    listed = [
        types.Tool(name=name, description=getdoc(form), input_schema=json_schema(form, {}))
        for name, (form, _) in tools.items()
    ]

    async def list_tools(*given: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(context: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        # on another thread, because an advance or a wait takes its time
        return await anyio.to_thread.run_sync(_call, tools, call.name, call.arguments or {})

    server = Server(
        "payment-sandbox",
        version=__version__,
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio.stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
