"""A new scenario needs a file and a test; a new ending needs a choice in a form and steps in the methods."""

from pathlib import Path

import pytest

from tests.support.changed_package import WRITE_SCHEMA, ChangedCheckout

SCENARIO = """name: nobody-pays
description: Every customer looks at the page, and goes away.
rules:
  - then: {customer: hesitates}
"""
TEST = '''

def test_nobody_pays(play: Play) -> None:
    """The order stays new on an open payment page."""
    sandbox = play("nobody-pays")
    order = sandbox.place(card())
    sandbox.advance("PT1M")
    assert sandbox.read(order)["status"] == "new"
'''
READY = "tests/scenarios/test_ready.py"
CATALOGUE = "test_ready.py::test_every_ready_scenario_has_a_description_and_a_test"
ONE_SCHEMA = "test_schema.py::test_the_schema_file_is_current"
TESTS = (f"tests/scenarios/{CATALOGUE}", f"tests/scenarios/{ONE_SCHEMA}")
CHECK_PROGRAM = """
from click.testing import CliRunner
from payment_sandbox.cli.main import commands
print(CliRunner().invoke(commands, ["check", "scenarios/nobody-pays.yaml"]).output)
"""
DOCUMENTED_PROGRAM = """
import requests
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS

with build(ServerConfig(clock="frozen@2027-01-01T00:00:00Z")) as server:
    def call(method, path, body=None):
        return requests.request(method, f"{server.url}{path}", json=body, auth=("sandbox-key", ""), timeout=60)

    assert "nobody-pays" in call("GET", "/control/scenarios/").text
    assert call("PUT", "/control/scenario/", {"name": "nobody-pays"}).status_code == 200
    made = call("POST", "/v1/orders/", {"currency": "EUR", "amount": 5, "transactions": [
        {"payment_method": "credit-card"}]}).json()
    call("POST", "/control/clock/advance/", {"by": "PT1M"})
    assert call("GET", f"/v1/orders/{made['id']}/").json()["status"] == "new"
    assert "hesitates" in call("GET", "/control/scenarios/schema/").text
    assert "hesitates" in call("GET", "/openapi.json").text
    wrong = call("PUT", "/control/scenario/", {"name": "x", "rules": [{"then": {"customer": "hesitate"}}]})
    assert "hesitates" in wrong.text
    assert "nobody-pays" in PARTS["ready-scenarios"]()
print("shown")
"""
ENDINGS = '"waits", "pays", "fails", "cancels", "abandons"'


@pytest.mark.prove
def test_a_new_ending_and_a_scenario_with_it(tmp_path: Path) -> None:
    """A new ending can be loaded, is documented and works; a missing test or schema fails a test."""
    checkout = ChangedCheckout(tmp_path)
    checkout.add("scenarios/nobody-pays.yaml", SCENARIO)
    assert "customer must be one of" in checkout.run(CHECK_PROGRAM)
    checkout.package.replace("scenarios/scenario_forms.py", ENDINGS, f'{ENDINGS}, "hesitates"')
    checkout.package.insert("methods/common.py", '    "abandons": "visit",\n', '    "hesitates": None,\n')
    assert checkout.failing(*TESTS) == {CATALOGUE, ONE_SCHEMA}
    assert "nobody-pays is fine, rules: 1" in checkout.run(CHECK_PROGRAM)
    assert checkout.run(WRITE_SCHEMA) == ""
    assert checkout.failing(*TESTS) == {CATALOGUE}
    checkout.append(READY, TEST)
    assert checkout.failing(*TESTS, f"{READY}::test_nobody_pays") == set()
    assert checkout.run(DOCUMENTED_PROGRAM) == "shown\n"
