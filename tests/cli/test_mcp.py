"""The tools for coding agents, called through the protocol's SDK."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import cleandoc
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.ui.docs.sections import section
from payment_sandbox.version import __version__
from payment_sandbox.web.control import COMMANDS
from tests.support.documentation import environment


class Agent:
    """An agent that is connected to the tools."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool that answers with JSON."""
        answer = await self.session.call_tool(tool, arguments)
        text: str = answer.content[0].text  # type: ignore[union-attr]
        assert not answer.is_error, text
        return json.loads(text)

    async def refusal(self, tool: str, **arguments: Any) -> str:
        """Call a tool that refuses; return why."""
        answer = await self.session.call_tool(tool, arguments)
        assert answer.is_error
        text: str = answer.content[0].text  # type: ignore[union-attr]
        return text


@asynccontextmanager
async def connected(**variables: str) -> AsyncIterator[tuple[Agent, Any]]:
    """Connect an agent; yield it with the greeting of the tools."""
    served = StdioServerParameters(
        command=sys.executable, args=["-m", "payment_sandbox", "mcp"], env={**environment(), **variables}
    )
    async with stdio_client(served) as streams, ClientSession(*streams) as session:
        hello = await session.initialize()
        yield Agent(session), hello


@pytest.mark.asyncio
async def test_agents_get_the_control_api_as_tools() -> None:
    """Names, arguments and descriptions are those of the calls; a server of their own has a frozen clock."""
    async with connected() as (agent, hello):
        assert "runs at http://127.0.0.1:" in hello.instructions
        assert "key sandbox-key" in hello.instructions
        assert hello.server_info.version == __version__
        tools = {tool.name: tool for tool in (await agent.session.list_tools()).tools}
        for tool in tools.values():
            assert tool.description, tool.name
            assert (tool.input_schema["type"], tool.input_schema["additionalProperties"]) == ("object", False)
        for made in COMMANDS.values():
            if not made.is_stream:
                schema = tools[made.name].input_schema
                assert list(schema["properties"]) == [each.name for each in made.shown]
                needed = {each.name for each in made.shown if each.is_required}
                assert set(schema.get("required", ())) == needed
                assert tools[made.name].description == cleandoc(made.about)
        assert (await agent.call("read_clock"))["mode"] == "frozen"
        assert (await agent.call("make_order", name="paid"))["order"]["status"] == "completed"
        await agent.call("patch_project", settings={"mode": "live"})
        made_order = await agent.call("make_order", name="new", amount=700)
        paid = await agent.call("make_order", name="paid", order_id=made_order["order"]["id"])
        assert (paid["order"]["id"], paid["order"]["amount"]) == (made_order["order"]["id"], 700)
        assert len(await agent.call("orders")) == 2
        assert "from" in await agent.call("advance", by="PT30M")
        read = await agent.session.call_tool("docs", {"reference": "mistakes#read-the-order"})
        assert read.content[0].text == section("mistakes#read-the-order")  # type: ignore[union-attr]
        found = (await agent.call("reviewed"))["items"]
        assert [each["rule"] for each in found] == ["HOOK-03"], "an agent's orders are not the shop's"


@pytest.mark.asyncio
async def test_agents_use_the_project_of_a_running_server(client: SandboxClient) -> None:
    """The tools act on the project that the environment variables name; refusals name all that is wrong."""
    async with connected(SANDBOX_URL=client.base_url, SANDBOX_API_KEY=client.api_key) as (agent, hello):
        assert client.base_url in hello.instructions
        made = await agent.call("make_order", name="hosted", amount=500)
        assert [each["id"] for each in client.orders()] == [made["order"]["id"]]
        assert "unexpected keyword argument 'minutes'" in await agent.refusal("advance", minutes=3)
        assert "missing a required argument: 'order_id'" in await agent.refusal("overview")
        assert "there is no order 'nope'" in await agent.refusal("overview", order_id="nope")
        wrong = await agent.refusal("make_order", name="payed", amount=12.95, amounts=5)
        assert "did you mean 'paid'?" in wrong
        assert "amount: must be a whole number of cents, such as 1295; got 12.95" in wrong
        assert "amounts: is not a known key" in wrong
        wrong = await agent.refusal("patch_project", settings={"mode": "liv", "seeds": 1})
        assert "did you mean 'live'?" in wrong
        assert "seeds is not a known key" in wrong
        assert "transfer needs mode live" in await agent.refusal("make_order", name="transfer")
        assert "it has: read-the-order" in await agent.refusal("docs", reference="mistakes#nope")
        assert "the tools are: read_clock" in await agent.refusal("nothing")
