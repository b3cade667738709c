"""Uses of a project that create temporary data."""

import requests

from payment_sandbox.operations.bank_qr import scan
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card, details

FORWARD = "http://127.0.0.1:9/listener"


def trade(sandbox: Sandbox) -> None:
    """Create orders, a refund, a stored card, a code, refused calls, faults, a scenario and settings."""
    order = sandbox.pay(sandbox.place(details(recurring_type="first"), merchant_order_id="shop-1"))
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 1})
    sandbox.post(f"/v1/orders/{order['id']}/refunds/", {"amount": 10**6})
    sandbox.settle()
    later = sandbox.place(card())
    fault = {"when": {"order_id": later["id"]}, "then": {"delay": "PT1H"}}
    sandbox.put("/control/faults/", {"webhooks": [fault], "faults": [{"then": {"latency": 0.01}}]})
    sandbox.scenario({"then": {"customer": "pays", "after": "PT20M"}})
    code = sandbox.post("/v1/bankqr/", {"amount": 5, "one_off": False}).json()
    scan(sandbox.project_in_process, code["id"], None, None, "form-1")
    sandbox.put("/control/state/", sandbox.get("/control/state/").json())
    sandbox.delete("/control/faults/")


def look(sandbox: Sandbox) -> None:
    """Open pages, and create notices, refused forms, live pages and an advance."""
    browser = Dashboard(sandbox)
    page = browser.open("orders/")
    browser.press(page, "P1D")
    browser.press(browser.open("simulate/"), "switch=lost-answer")
    sandbox.delete("/control/faults/")
    order = sandbox.place(card())
    browser.press(browser.open(f"orders/{order['id']}/"), "customer pay")
    for view in ("requests", "mistakes", "simulate", "settings"):
        browser.open(f"{view}/")
    events = sandbox.project_in_process.events
    events.watchers += 1000
    browser.http.get(f"{browser.base}orders/")
    events.watchers -= 1000
    requests.get(f"http://{order['order_url']}")


def watch(sandbox: Sandbox) -> None:
    """Create event streams that end, a listener that disconnects, and a wait that times out."""
    for path in ("/control/events/?after=1", f"/dashboard/{sandbox.project['project_id']}/events/?after=1"):
        with requests.get(f"{sandbox.url}{path}", auth=(sandbox.key, ""), stream=True) as stream:
            next(stream.iter_content(1))
    sandbox.get("/control/wait/?idle=1&timeout=0")
    body = {"timeout": 0, "listener": "one", "forward_to": FORWARD}
    sandbox.post("/control/listener/next/", body)
    sandbox.post("/control/listener/next/", {**body, "leaves": True})
    sandbox.project_in_process.forward_webhooks(FORWARD)
    sandbox.pay(sandbox.place(card()))
