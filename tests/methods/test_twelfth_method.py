"""A payment method is one module and one line in the list: an invented method works everywhere."""

from pathlib import Path

import pytest

from tests.support.changed_package import ChangedPackage

RULE = "CASH-01\tResources: Order\tchoice\tcall\tcounter_id: required for counter-cash\n"
MODULE = '''
"""Paid at the counter of a shop nearby."""

from payment_sandbox.methods.common import Capabilities, DetailField, Labels
from payment_sandbox.methods.common import PAGE_TRIGGERS, PageMethod
from payment_sandbox.orders.refusals import Violation


class CounterCash(PageMethod):
    """The customer pays cash at a counter."""

    name = "counter-cash"
    capabilities = Capabilities(
        labels=Labels("Cash at a counter", "Contant aan de balie", "Bar am Schalter", "En espèces au guichet"),
        default_expiration="P3D",
        brand="cash",
        details=(
            DetailField(
                "counter_id",
                "counter-cash: which counter.",
                "CASH-01",
                label=Labels("Counter", "Balie", "Schalter", "Guichet"),
            ),
        ),
        triggers=PAGE_TRIGGERS,
    )

    def check(self, draft, terms):
        """The counter must be named."""
        if draft.details.get("counter_id", "").startswith("c-"):
            return []
        return [Violation(f"{draft.path}.payment_method_details.counter_id", "is required for counter-cash")]
'''
PROGRAM = """
import json, re, requests
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.review_scenario import review_scenario
from payment_sandbox.scenarios.loader import load_text
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS

assert "counter-cash" in METHOD_NAMES and len(METHOD_NAMES) == len(set(METHOD_NAMES))
DETAILS = {"counter_id": "c-7"}
with build(ServerConfig(clock="frozen@2027-01-01T00:00:00Z")) as server:
    def call(method, path, body=None, status=200):
        answer = requests.request(method, f"{server.url}{path}", json=body, auth=("sandbox-key", ""), timeout=60)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
        return answer.json()

    def order(**more):
        return {"currency": "EUR", "amount": 500, **more}

    def cash(**details):
        return {"transactions": [{"payment_method": "counter-cash", "payment_method_details": details}]}

    # the API
    made = call("POST", "/v1/orders/", order(**cash(**DETAILS)), 201)
    (attempt,) = made["transactions"]
    assert (attempt["payment_method_brand"], attempt["expiration_period"]) == ("cash", "P3D")
    call("POST", f"/control/orders/{made['id']}/act/", {"actor": "customer", "action": "pay"})
    assert call("POST", f"/v1/orders/{made['id']}/refunds/", {}, 201)["status"] == "completed"
    refused = call("POST", "/v1/orders/", order(**cash()), 400)["error"]
    assert refused["violations"][0]["path"] == "transactions[0].payment_method_details.counter_id"
    assert "counter-cash" in call("GET", "/v1/merchants/self/projects/self/currencies/")["payment_methods"]
    assert "counter-cash" in call("GET", "/control/project/")["settings"]["payment_methods"]

    # its pages, in every language
    hosted = call("POST", "/v1/orders/", order(), 201)
    for language, label in {"en-GB": "Cash at a counter", "nl": "Contant", "de": "Bar am", "fr-BE": "guichet"}.items():
        page = requests.get(f"http://{hosted['order_url']}?language={language}", timeout=60)
        assert page.status_code == 200 and label in page.text, (language, page.text)
    paid = call("POST", "/v1/orders/", order(**cash(**DETAILS)), 201)["transactions"][0]["payment_url"]
    page = requests.get(f"http://{paid}", timeout=60).text
    token, *_ = re.findall(r'name="token" value="([^"]+)"', page)
    done = requests.post(f"http://{paid}", data={"token": token, "action": "pay"}, timeout=60)
    assert done.status_code == 200 and 'data-testid="result-paid"' in done.text, done.text

    # the hosted page asks for the detail that it needs, in every language, and keeps a wrong answer
    page_url = f"http://{hosted['order_url']}"
    def choose(**more):
        token, *_ = re.findall(r'name="token" value="([^"]+)"', requests.get(page_url, timeout=60).text)
        form = {"token": token, "attempts": "0", "payment_method": "counter-cash", **more}
        return requests.post(page_url, data=form, timeout=60)

    asked = choose()
    assert asked.status_code == 200 and 'name="counter_id"' in asked.text and "<script>" not in asked.text, asked.text
    for language, label in {"en-GB": "Counter", "nl": "Balie", "de": "Schalter", "fr-BE": "Guichet"}.items():
        page = requests.get(f"{page_url}?details=counter-cash&language={language}", timeout=60).text
        assert f">{label}</label>" in page, (language, page)
    wrong = choose(details="1", counter_id='"><b>x')
    assert wrong.status_code == 400 and 'data-testid="errors"' in wrong.text, wrong.text
    assert '"><b>x' not in wrong.text and 'value="&#34;&gt;&lt;b&gt;x"' in wrong.text, wrong.text
    assert call("GET", f"/v1/orders/{hosted['id']}/")["transactions"] == []
    chosen = choose(details="1", counter_id=" c-9 ")
    token, *_ = re.findall(r'name="token" value="([^"]+)"', chosen.text)
    done = requests.post(chosen.url, data={"token": token, "action": "pay"}, timeout=60)
    assert 'data-testid="result-paid"' in done.text, done.text

    # scenarios: its trigger values, and rules about it
    by_mail = order(customer={"email_address": "pays@example.com"}, **cash(**DETAILS))
    triggered = call("POST", "/v1/orders/", by_mail, 201)
    call("POST", "/control/clock/advance/", {"by": "PT10S"})
    assert call("GET", f"/v1/orders/{triggered['id']}/")["status"] == "completed"
    scenario = "name: x\\nrules: [{when: {payment_method: counter-cash}, then: {customer: fails}}]"
    assert review_scenario(load_text(scenario, METHOD_NAMES, lambda settings: None)) == []
    rule = {"when": {"payment_method": "counter-cash"}, "then": {"customer": "fails"}}
    call("PUT", "/control/scenario/", {"name": "x", "rules": [rule]})
    failed = call("POST", "/v1/orders/", order(**cash(**DETAILS)), 201)
    call("POST", "/control/clock/advance/", {"by": "PT1S"})
    assert call("GET", f"/v1/orders/{failed['id']}/")["status"] == "error"

    # a snapshot with an order by this method
    call("PUT", "/control/state/", call("GET", "/control/state/"))

    # documentation and description
    for name in ("methods", "outcomes"):
        assert "counter-cash" in PARTS[name](), name
    described = json.dumps(call("GET", "/openapi.json"))
    assert "counter_id" in described and "counter-cash" in described
print("walked")
"""


@pytest.fixture
def package(tmp_path: Path) -> ChangedPackage:
    """The package with a twelfth method: one module, its import, and one line in the list."""
    changed = ChangedPackage(tmp_path)
    changed.add("methods/counter_cash.py", MODULE)
    changed.append("fidelity/rules.tsv", RULE)
    methods = "methods/__init__.py"
    changed.insert(
        methods,
        "from payment_sandbox.methods.credit_card import",
        "from payment_sandbox.methods.counter_cash import CounterCash\n",
    )
    changed.insert(methods, "    InvoiceLaterB(),\n", "    CounterCash(),\n")
    return changed


def test_an_invented_method_works_everywhere(package: ChangedPackage) -> None:
    """An invented method works in the API, on pages, in scenarios, snapshots, documentation and OpenAPI."""
    assert package.run(PROGRAM) == "walked\n"
