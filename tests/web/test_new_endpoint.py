"""A new control command is a function in one module; everything else is derived from it."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

COMMAND = '''


class Tally(TypedDict):
    """How many there are."""

    orders: Annotated[int, "All orders and refunds."]


@command(control, "GET", "/tally/")
def tally(project: Project, *, status: Annotated[OfStatus, "Only with this status."] | None = None) -> Tally:
    """Count the orders of the project."""
    orders = map(project.find_order, project.epoch.store.order_ids())
    return {"orders": sum(1 for order in orders if status in (None, order.status))}
'''
START = """
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS
from click.testing import CliRunner
from payment_sandbox.cli.main import commands
from payment_sandbox.client.client import SandboxClient
import requests

server = build(ServerConfig())

def get(path, key="sandbox-key"):
    with requests.get(f"{server.url}{path}", auth=(key, "")) as answer:
        return answer

with server:
"""
COMPLETE_PROGRAM = f"""{START}
    assert get("/control/tally/").json() == {{"orders": 0}}
    assert get("/control/tally/", "no-such-key").status_code == 401
    (wrong,) = get("/control/tally/?ordres=1").json()["error"]["violations"]
    assert wrong["path"] == "ordres", wrong
    described = get("/openapi.json").json()
    operation = described["paths"]["/control/tally/"]["get"]
    assert operation["summary"] == "Count the orders of the project."
    shape = described["components"]["schemas"]["Tally"]
    assert shape["properties"]["orders"]["description"] == "All orders and refunds."
    content = operation["responses"]["200"]["content"]["application/json"]
    assert content["example"]["orders"] > 0, content
    assert get("/control/tally/?status=payed").json()["error"]["violations"][0]["path"] == "status"
    assert SandboxClient(server.url, "sandbox-key").tally(status="new") == {{"orders": 0}}
    shell = CliRunner().invoke(commands, ["tally", "--status", "new"], env={{"SANDBOX_URL": server.url}})
    assert shell.output == "orders: 0\\n", shell.output
    reference = PARTS["control-api"]()
    assert "/control/tally/" in reference and "Count the orders of the project." in reference
print("there")
"""
DESCRIBED = "tests/web/test_description.py::test"
TESTS = (
    f"{DESCRIBED}_every_json_answer_has_a_real_shape",
    f"{DESCRIBED}_every_call_has_an_example_that_fits_its_shape",
    f"{DESCRIBED}_refusals_have_recorded_examples",
    "tests/howto/test_docs_complete.py::test_every_route_is_mentioned",
    "tests/web/control/test_complete.py",
)
EXAMPLE = "tests/cli/test_examples.py::test_the_example_works[tally]"
MISSING = {
    "test_description.py::test_every_call_has_an_example_that_fits_its_shape",
    "test_description.py::test_refusals_have_recorded_examples",
    "test_docs_complete.py::test_every_route_is_mentioned",
}


@pytest.mark.prove
def test_a_new_command_is_everywhere(tmp_path: Path) -> None:
    """After ``make docs``, it is in OpenAPI, in the reference, in each client, in the shell and in the tools."""
    checkout = ChangedCheckout(tmp_path)
    checkout.package.append("web/control/orders_control.py", COMMAND)
    checkout.package.replace("web/control/orders_control.py", "Literal, cast", "Literal, TypedDict, cast")
    assert checkout.failing(*TESTS) >= MISSING
    assert "updated reference.md" in checkout.run("from tests.documentation.__main__ import main; main()")
    assert checkout.failing(*TESTS, EXAMPLE) == set()
    assert checkout.run(COMPLETE_PROGRAM) == "there\n"
