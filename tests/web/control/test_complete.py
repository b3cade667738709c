"""Every call of the control API is in the clients for Python, Node and PHP, in the shell and in the tools for agents."""

import re
from pathlib import Path

import payment_sandbox
from payment_sandbox.cli.mcp import Tools
from payment_sandbox.cli.remote import COMMANDS as SHELL
from payment_sandbox.cli.remote import COVERED
from payment_sandbox.client.client import CONTROL_TOKEN_PATHS, SandboxClient
from payment_sandbox.web.control import COMMANDS, FACES

FOLDERS = Path(payment_sandbox.__file__).parents[1]
CALLS = [each for each in COMMANDS.values() if not each.is_stream]


def test_every_route_is_a_declared_command() -> None:
    """No view stands beside the commands."""
    views = sum(len(face.group.routes) for face in FACES)
    assert views == len(COMMANDS) > 40


def test_the_python_client_has_every_call() -> None:
    """The event stream has a method of its own."""
    assert [each.name for each in CALLS if not callable(getattr(SandboxClient, each.name, None))] == []
    assert callable(SandboxClient.events)


def test_the_shell_has_every_call() -> None:
    """A call has a command, or is part of one."""
    covered = {call for calls in COVERED.values() for call in calls}
    names = {str(each.name) for each in SHELL}
    assert covered <= {each.name for each in CALLS}, "a covered call no longer exists"
    assert set(COVERED) <= names
    assert {each.name.replace("_", "-") for each in CALLS if each.name not in covered} <= names


def test_agents_can_make_every_call() -> None:
    """Each call is a tool, beside two of their own."""
    tools = set(Tools(SandboxClient("http://127.0.0.1:9", "")).by_name)
    assert tools == {"make_order", "docs", *(each.name for each in CALLS)}


def test_node_and_php_have_every_call_of_a_project() -> None:
    """Calls for the whole server are not in the clients of one project."""
    wanted = {
        re.sub(r"_(\w)", lambda found: found[1].upper(), each.name)
        for each in CALLS
        if each.path not in CONTROL_TOKEN_PATHS
    }
    node = re.findall(r"^  (\w+)\(.*\): Promise<", (FOLDERS / "node/control.d.ts").read_text(), re.MULTILINE)
    table = re.findall(r"^  (\w+): \[", (FOLDERS / "node/control.js").read_text(), re.MULTILINE)
    php = re.findall(r"public function (?!__)(\w+)", (FOLDERS / "php/src/ControlCommands.php").read_text())
    assert set(node) == set(table) == set(php) == wanted
