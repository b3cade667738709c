"""A new field of an order takes one row in the table of fields, and a rule."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedPackage

ROW = """    SentField("invoice_number", Text(pattern="[0-9]+", expected="digits", about="On the invoice."), "ORD-99"),
"""
RULE = "ORD-99\tResources: Order\tchoice\tcall\tinvoice_number: optional string of digits, stored\n"
PROGRAM = """
import requests
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS

with build(ServerConfig()) as server:
    def call(method, path, body=None, **options):
        url = f"{server.url}{path}"
        return requests.request(method, url, json=body, auth=("sandbox-key", ""), **options)

    made = call("POST", "/v1/orders/", {"currency": "EUR", "amount": 5, "invoice_number": "17"})
    assert (made.status_code, "Sandbox-Ignored-Fields" in made.headers) == (201, False), made.text
    order = made.json()
    path = f"/v1/orders/{order['id']}/"
    assert order["invoice_number"] == "17"
    assert call("GET", path).json()["invoice_number"] == "17"
    assert call("PUT", path, {"invoice_number": "18"}).json()["invoice_number"] == "18"
    refused = call("PUT", path, {"invoice_number": "x"})
    assert refused.json()["error"]["violations"] == [{"path": "invoice_number", "message": "must be digits; got 'x'"}]
    assert refused.headers["Sandbox-Explain"].startswith("ORD-99 invoice_number: ")
    state = call("GET", "/control/state/").json()
    assert call("PUT", "/control/state/", state).status_code == 200
    state["orders"][0]["sent"]["invoice_number"] = {"bad": 1}
    refused = call("PUT", "/control/state/", state)
    assert refused.status_code == 400, refused.text
    (found,) = refused.json()["error"]["violations"]
    assert (found["path"], found["message"]) == ("state.orders[0].sent.invoice_number", "must be a string; got an object")
    assert call("GET", path).json()["invoice_number"] == "18"
    described = call("GET", "/openapi.json").json()["components"]["schemas"]
    for name in ("Order", "OrderRequest", "UpdateRequest"):
        assert described[name]["properties"]["invoice_number"]["description"] == "On the invoice.", name
    assert "invoice_number" in PARTS["merchant-api"]()
    order = call("POST", "/v1/orders/", {"currency": "EUR", "amount": 5, "transactions": [
        {"payment_method": "credit-card"}]}).json()
    call("POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"})
    late = call("PUT", f"/v1/orders/{order['id']}/", {"amount": 6, "invoice_number": "19"})
    assert "invoice_number" in late.json()["error"]["allowed"]
print("there")
"""


@pytest.fixture
def package(tmp_path: Path) -> ChangedPackage:
    """A package with the rule of the new field."""
    package = ChangedPackage(tmp_path)
    package.append("fidelity/rules.tsv", RULE)
    return package


def test_a_new_field_is_one_row(package: ChangedPackage) -> None:
    """One row makes the field validated, stored, shown, updated, explained, restored and described."""
    package.insert("forms/order_fields.py", '    SentField("return_url"', ROW)
    assert package.run(PROGRAM) == "there\n"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("ORD-07", "ORD-07 is the rule of both merchant_order_id and invoice_number: give invoice_number"),
        ("SET-11", "SET-11 is the rule of both amount and invoice_number: give invoice_number"),
        ("ORD-98", "the rule of invoice_number is ORD-98, which is not in fidelity/rules.tsv"),
    ],
)
def test_a_field_without_a_rule_of_its_own_does_not_start(
    package: ChangedPackage, rule: str, problem: str
) -> None:
    """A shared or unknown rule prevents startup, because refusals would name the wrong rule."""
    package.insert("forms/order_fields.py", '    SentField("return_url"', ROW.replace("ORD-99", rule))
    with pytest.raises(AssertionError, match=problem):
        package.run("import payment_sandbox.serving.app")
