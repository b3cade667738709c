"""A new endpoint is a function with facts; the tests of a changed checkout name its missing documentation."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedCheckout

VIEW = '''"""A call that counts."""

from flask import Response

from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.answers.tallies import Tally
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import control
from payment_sandbox.web.routes import route


def tally(call: Call) -> Tally:
    """Count the orders."""
    return {"orders": len(call.project.epoch.store.order_ids())}


@route(control, "GET", "/tally/", answers=Tally, slow=True)
def get_tally(call: Call) -> Response:
    """Count the orders of the project."""
    return json_answer(tally(call))
'''
RECORD = '''"""The record of a call that counts."""

from typing import Annotated, TypedDict


class Tally(TypedDict):
    """How many there are."""

    orders: Annotated[int, "All orders and refunds."]
'''
START = """
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS
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
    reference = PARTS["control-api"]()
    assert "/control/tally/" in reference and "Count the orders of the project." in reference
print("there")
"""
DESCRIBED = "tests/web/test_description.py::test"
WRITTEN = "tests/howto/test_docs_complete.py::test"
TESTS = (
    f"{DESCRIBED}_every_json_answer_has_a_real_shape",
    f"{DESCRIBED}_every_call_has_an_example_that_fits_its_shape",
    f"{DESCRIBED}_refusals_have_recorded_examples",
    f"{WRITTEN}_every_route_is_mentioned",
    f"{WRITTEN}_every_control_call_is_explained_by_hand",
)
NO_EXAMPLE = "test_description.py::test_every_call_has_an_example_that_fits_its_shape"
NO_REFUSALS = "test_description.py::test_refusals_have_recorded_examples"
NO_REFERENCE = "test_docs_complete.py::test_every_route_is_mentioned"
NO_SENTENCE = "test_docs_complete.py::test_every_control_call_is_explained_by_hand"
PAGE = "ui/docs/pages/time.md"


@pytest.fixture
def checkout(tmp_path: Path) -> ChangedCheckout:
    """A checkout that has the new function with its facts and its record in separate modules."""
    checkout = ChangedCheckout(tmp_path)
    checkout.package.add("web/answers/tallies.py", RECORD)
    checkout.package.add("web/control/tally_routes.py", VIEW)
    return checkout


def import_module(checkout: ChangedCheckout) -> None:
    """Import the new module in the package of the control API."""
    checkout.package.insert("web/control/__init__.py", "traffic_routes\n", "tally_routes, ")


@pytest.mark.prove
def test_a_new_endpoint_is_everywhere(checkout: ChangedCheckout) -> None:
    """The endpoint answers and is documented; failing tests name each missing part."""
    import_module(checkout)
    assert checkout.failing(*TESTS) == {NO_EXAMPLE, NO_REFUSALS, NO_REFERENCE, NO_SENTENCE}
    checkout.insert("tests/documentation/examples.py", '    "timeline",\n', '    "tally",\n')
    assert "updated reference.md" in checkout.run("from tests.documentation.__main__ import main; main()")
    assert checkout.failing(*TESTS) == {NO_SENTENCE}
    checkout.package.append(PAGE, "\n`GET /control/tally/` counts the orders.\n")
    assert checkout.failing(*TESTS) == set()
    assert checkout.run(COMPLETE_PROGRAM) == "there\n"
