"""The MCP server for coding agents."""

import os
from typing import TYPE_CHECKING, Any, Final

import click

from payment_sandbox.cli.options import fail
from payment_sandbox.extensions import MCP_EXTRA, NotInstalled
from payment_sandbox.loading import lazy
from payment_sandbox.version import __version__

if TYPE_CHECKING:
    from mcp import server as sdk
    from mcp.server.mcpserver import exceptions

    from payment_sandbox.cli import agent_tools
else:
    sdk = lazy("mcp.server")
    exceptions = lazy("mcp.server.mcpserver.exceptions")
    agent_tools = lazy("payment_sandbox.cli.agent_tools")

INSTRUCTIONS: Final = (
    "A sandbox of the payment-orders API. Call start first, give its address and key to the shop under test, "
    "and let the shop create orders. The sandbox's clock is frozen: advance it instead of waiting. "
    "search(page='agents') lists the steps, and actions to avoid."
)


@click.command(epilog="Example: payment-sandbox mcp")
def mcp() -> None:
    """Offer the sandbox as tools to coding agents, over standard input and output."""
    try:
        tool_error = exceptions.ToolError
    except ModuleNotFoundError:
        fail(str(NotInstalled("mcp", MCP_EXTRA)))

    class StrictServer(sdk.MCPServer):
        """A server that refuses unknown arguments, which the SDK drops, and wrong ones in our own words."""

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            """Call a tool."""
            if (problem := agent_tools.wrong_argument(name, arguments)) is not None:
                raise tool_error(problem)
            return await super().call_tool(name, arguments, context)

    tools = agent_tools.SandboxTools(os.environ)
    server = StrictServer(
        "payment-sandbox", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR"
    )
    for name in agent_tools.TOOLS:
        server.add_tool(getattr(tools, name), name, structured_output=False)
    try:
        server.run()
    finally:
        tools.close()
