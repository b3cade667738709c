"""A new command needs a function; its example runs as a test."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

COMMAND = '''

@remote("count", example="count --newest 5")
@click.option("--newest", default=10, show_default=True, help="Look at so many orders.")
def count(call: CommandRun, newest: int) -> None:
    """Count the newest orders."""
    call.show({"orders": len(call.sandbox.orders(limit=newest))}, lambda answer: f"{answer['orders']} orders")
'''
MODULE = "cli/remote/order_commands.py"
EXAMPLES = "tests/cli/test_examples.py"
MENTIONED = "test_docs_complete.py::test_every_command_and_option_is_mentioned"
TESTS = (
    f"{EXAMPLES}::test_help_has_an_example_of_the_command[count]",
    f"{EXAMPLES}::test_the_example_works[count]",
    f"tests/howto/{MENTIONED}",
)
SHOWN = """
from click.testing import CliRunner
from payment_sandbox.cli.main import commands
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build

def run(*arguments):
    return CliRunner().invoke(commands, arguments, env={"SANDBOX_URL": server.url, "SANDBOX_API_KEY": "sandbox-key"})

with build(ServerConfig()) as server:
    assert run("count").output == "0 orders\\n", run("count").output
    assert '"orders": 0' in run("count", "--json").output
    assert "Example: payment-sandbox count --newest 5" in run("count", "--help").output
    assert "count" in run("--help").output
    assert "did you mean 'count'?" in run("cuont").output, run("cuont").output
    refused = run("count", "--key", "no-such-key")
    assert refused.exit_code == 2 and "no project has this API key" in refused.output, refused.output
print("shown")
"""


@pytest.mark.prove
def test_a_new_command_is_everywhere(tmp_path: Path) -> None:
    """It runs, completes and suggests corrections; a wrong example and an outdated reference are reported."""
    checkout = ChangedCheckout(tmp_path)
    checkout.package.append(MODULE, COMMAND.replace(', example="count --newest 5"', ', example="cuont"'))
    assert checkout.failing(*TESTS) == {
        "test_examples.py::test_help_has_an_example_of_the_command",
        "test_examples.py::test_the_example_works",
        MENTIONED,
    }
    checkout.package.replace(MODULE, 'example="cuont"', 'example="count --newest 5"')
    assert checkout.failing(*TESTS) == {MENTIONED}
    assert "updated reference.md" in checkout.run("from tests.documentation.__main__ import main; main()")
    assert checkout.failing(*TESTS) == set()
    assert checkout.run(SHOWN) == "shown\n"
