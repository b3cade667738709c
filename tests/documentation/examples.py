"""Example responses of all routes, recorded by a small shop against the sandbox."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from flask import Flask

from payment_sandbox.app import build_app
from payment_sandbox.client.client import CONTROL_TOKEN_PATHS
from payment_sandbox.projects.clock import RealTime, Start
from payment_sandbox.projects.project import Services
from payment_sandbox.web.control import COMMANDS
from payment_sandbox.web.routes import JSON, described_routes
from tests.support.projects import made_registry

START_TIME: Final = "frozen@2027-01-01T12:00:00Z"
ITEMS_SHOWN_MAX: Final = 2  # items of a list, to keep examples short
REFUSED_STATUS_MIN: Final = 400
COFFEE_REQUEST: Final = {"amount": 1295, "description": "Coffee"}
STALE_ETAG: Final = "If-Match of an earlier version"
UNKNOWN_ID: Final = "an unknown id"
OPEN_PATHS: Final = ("/health/", "/control/projects/")  # paths that need no key
LINE_CALLS: Final = ("captures/orderlines", "voids/orderlines")
_IDS: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|request-[0-9]+|second-try-works")
READ_WITH_VALUES: Final = ("/control/wait/",)
CARD: Final = {
    "payment_method": "credit-card",
    "capture_mode": "manual",
    "expiration_period": "P7D",
}
LINES: Final = [
    {"merchant_order_line_id": "line-1", "name": "Socks", "amount": 500, "quantity": 2},
    {"merchant_order_line_id": "line-2", "name": "Postage", "amount": 295, "quantity": 1},
]
ORDER: Final = {
    "currency": "EUR",
    "amount": 1295,
    "description": "Two pairs of socks",
    "webhook_url": "https://shop.example/webhook",
    "order_lines": LINES,
    "transactions": [CARD],
}


def plain_reads() -> list[str]:
    """List the paths of the calls that read something of a project and need no values."""
    return sorted(
        each.path
        for each in COMMANDS.values()
        if each.method == "GET"
        and not (each.is_stream or any(given.is_required or given.is_in_path for given in each.parameters))
        and each.path not in CONTROL_TOKEN_PATHS
        and each.path not in READ_WITH_VALUES
    )


class Example(NamedTuple):
    """A recorded call and its response."""

    path: str
    body: Any
    answer: Any


class Shop:
    """A client that records the last response of each route, and its refusals by status."""

    def __init__(self, app: Flask, api_key: str) -> None:
        self._app = app
        self._routes = {each.name: each for each in described_routes(app)}
        self._facts = {name: each.facts for name, each in self._routes.items()}
        self._client = app.test_client()
        self._headers = {"Authorization": f"Basic {b64encode(f'{api_key}:'.encode()).decode()}"}
        self.answers: dict[str, Example] = {}
        self.refusals: dict[str, dict[int, Example]] = {}
        self._refused: set[str] = set()  # the endpoints whose calls have been repeated

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        shown_body: Any = None,
    ) -> Any:
        """Make a call; a success becomes the route's example, a refusal the example of its status.

        ``shown_body`` replaces the request body in the example.
        """
        answer = self._client.open(
            path,
            method=method,
            json=body,
            headers=self._headers if headers is None else headers,
            base_url="http://127.0.0.1:8080",
        )
        data = answer.get_json(silent=True)
        endpoint = self._find_endpoint(method, path.partition("?")[0])
        facts = self._facts[endpoint]
        if facts.media_type != JSON:
            return data
        if answer.status_code == facts.status:
            self.answers[endpoint] = Example(path, body, _shorten(data))
        elif answer.status_code >= REFUSED_STATUS_MIN:
            self.refusals.setdefault(endpoint, {})[answer.status_code] = Example(
                path, shown_body or body, data
            )
        return data

    def _find_endpoint(self, method: str, path: str) -> str:
        with self._app.test_request_context(path, method=method) as context:
            assert context.request.endpoint is not None, f"no route matches {path}"
            view: Any = self._app.view_functions[context.request.endpoint]
            return f"{view.facts.group}.{view.__name__}"

    def record_refusals(self) -> None:
        """Repeat each new call with every mistake that its route can refuse."""
        for endpoint in sorted(self.answers.keys() - self._refused):
            self._refused.add(endpoint)
            self._record_refusals_of(endpoint, self._routes[endpoint].method)

    def _record_refusals_of(self, endpoint: str, method: str) -> None:
        facts, example = self._facts[endpoint], self.answers[endpoint]
        path = example.path.partition("?")[0]
        if facts.reads is not None:
            body = example.body if facts.example is None else facts.example
            wrong = _mistake(body)
            self.call(method, path, {**(body or {}), **wrong}, shown_body=wrong)
        elif path.startswith("/control/"):
            self.call(method, f"{path}?unknown=1")
        if facts.if_match:
            self.call(
                method, path, example.body, {**self._headers, "If-Match": '"an-earlier-version"'}, STALE_ETAG
            )
        for known in _IDS.findall(path)[:1]:
            self.call(method, path.replace(known, "no-such-id"), example.body, shown_body=UNKNOWN_ID)
        if not path.startswith(OPEN_PATHS):
            self.call(method, path, example.body, {})


class PaidOrder(NamedTuple):
    """The ids of an order and its attempt."""

    order_id: str
    transaction_id: str


def record_examples() -> Shop:
    """Record examples of all JSON routes."""
    moment = Start.parse(START_TIME).at
    assert moment is not None, "the start time must be frozen"
    services = Services(RealTime(lambda: moment, lambda: 0.0))
    registry = made_registry(1, START_TIME, services)
    _, api_key = registry.create({"name": "Sock shop"})
    shop = Shop(build_app(registry, public_url="http://127.0.0.1:8080"), api_key)
    shop.call("PUT", "/control/state/", shop.call("GET", "/control/state/"))
    _record_merchant_calls(shop)
    shop.record_refusals()
    _record_control_calls(shop)
    shop.record_refusals()
    shop.call("DELETE", "/control/project/")
    return shop


def recorded_examples() -> str:
    """Return the examples as JSON, for the OpenAPI description."""
    shop = record_examples()
    examples = {
        endpoint: {
            "body": example.body,
            "answer": example.answer,
            "refusals": {
                status: {"body": refusal.body, "answer": refusal.answer}
                for status, refusal in sorted(shop.refusals.get(endpoint, {}).items())
            },
        }
        for endpoint, example in sorted(shop.answers.items())
    }
    return json.dumps(examples, indent=1) + "\n"


def _mistake(body: Any) -> dict[str, Any]:
    if not body or "amount" in body:
        return {"amount": 12.95}
    name = next(iter(body))
    return {name: "soon" if isinstance(body[name], int) else 12.95}


def _record_merchant_calls(shop: Shop) -> None:
    ids = list(_create_paid_orders(shop))
    capture, void = ids
    path = f"/v1/orders/{capture.order_id}/transactions/{capture.transaction_id}"
    shop.call("POST", f"{path}/captures/amount/", {"amount": 500, "description": "First parcel"})
    shop.call("POST", f"{path}/voids/amount/", {"amount": 100, "description": "Out of stock"})
    shop.call("POST", f"{path}/captures/")
    shop.call("POST", f"/v1/orders/{capture.order_id}/refunds/", {"amount": 500, "description": "Came back"})
    path = f"/v1/orders/{void.order_id}/transactions/{void.transaction_id}"
    one = {"order_lines": [{"merchant_order_line_id": "line-1", "quantity": 1}]}
    shop.call("POST", f"{path}/captures/orderlines/", {**one, "description": "First parcel"})
    shop.call("POST", f"{path}/voids/orderlines/", {**one, "description": "Out of stock"})
    hosted = shop.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 500})
    shop.call("PUT", f"/v1/orders/{hosted['id']}/", {"description": "Two pairs of socks, blue"})
    shop.call("DELETE", f"/v1/orders/{hosted['id']}/")
    shop.call("POST", "/v1/orders/", ORDER)
    shop.call("GET", f"/v1/orders/{capture.order_id}/?fields[]=amount_details")
    shop.call("GET", "/v1/bank-redirect-nl/issuers/")
    shop.call("GET", "/v1/merchants/self/projects/self/currencies/")
    shop.call("GET", "/v1/merchants/self/projects/self/")
    code = shop.call("POST", "/v1/bankqr/", {**COFFEE_REQUEST, "size": 300, "one_off": True})
    for _ in range(2):  # the second scan is refused, because the code allows one payment
        shop.call("POST", f"/control/bankqr/{code['id']}/scan/")
    _record_conflicts(shop, capture, void)


def _record_conflicts(shop: Shop, capture: PaidOrder, void: PaidOrder) -> None:
    """Make calls that a rule refuses in the order's current state."""
    for order, kinds in ((capture, ("captures", "captures/amount", "voids/amount")), (void, LINE_CALLS)):
        for kind in kinds:
            path = f"/v1/orders/{order.order_id}/transactions/{order.transaction_id}/{kind}/"
            lines = [{"merchant_order_line_id": "line-1", "quantity": 9}]
            shop.call("POST", path, {"order_lines": lines} if kind in LINE_CALLS else {"amount": 9000})
    path = f"/v1/orders/{capture.order_id}/"
    shop.call("POST", f"{path}refunds/", {"amount": 9000})
    shop.call("PUT", path, {"amount": 500})
    shop.call("DELETE", path)
    shop.call("POST", f"/control/orders/{capture.order_id}/act/", {"actor": "customer", "action": "pay"})
    shop.call("POST", f"/v1/orders/{capture.order_id}/transactions/{capture.transaction_id}/captures/", [1])
    shop.call("GET", f"/control/wait/?order_id={capture.order_id}&status=expired&timeout=0")
    shop.call("GET", "/control/wait/?order_id=no-such-id&status=expired&timeout=0")
    shop.call("GET", "/control/timeline/?order_id=no-such-id")
    shop.call("GET", "/control/report/?order_id=no-such-id")
    shop.call("GET", f"{path}?fields[]=amounts")
    shop.call("GET", "/v1/wallet-web/issuers/")
    shop.call("DELETE", "/control/project/", headers={})
    shop.call("DELETE", "/control/project/", {"really": True})


def _create_paid_orders(shop: Shop) -> Iterator[PaidOrder]:
    for _ in range(2):
        order = shop.call("POST", "/v1/orders/", ORDER)
        shop.call("POST", f"/control/orders/{order['id']}/act/", {"actor": "customer", "action": "pay"})
        yield PaidOrder(order["id"], order["transactions"][0]["id"])


def _record_control_calls(shop: Shop) -> None:
    for path in (*plain_reads(), "/control/projects/"):
        shop.call("GET", path)
    (entry, *_) = shop.call("GET", "/control/journal/?summary=1")["items"]
    shop.call("GET", f"/control/journal/{entry['id']}/")
    shop.call("GET", "/control/scenarios/second-try-works/")
    (first, *_) = shop.call("GET", "/control/webhooks/")["items"]
    shop.call("GET", f"/control/webhooks/{first['id']}/")
    shop.call("GET", f"/control/orders/{first['order_id']}/")
    shop.call("POST", f"/control/webhooks/{first['id']}/redeliver/")
    shop.call("POST", "/control/webhooks/deliver/", {"webhook_url": "https://shop.example/webhook"})
    shop.call("GET", "/control/wait/?" + f"order_id={first['order_id']}&status=completed&timeout=0")
    shop.call("POST", "/control/listener/next/", {"timeout": 0})
    shop.call("POST", "/control/listener/answers/", {"id": "an attempt", "status": 204, "duration_ms": 12.5})
    shop.call("POST", "/control/clock/advance/", {"by": "PT30M"})
    shop.call("PATCH", "/control/clock/", {"now": "2027-01-02T00:00:00Z"})
    shop.call("PUT", "/control/scenario/", {"name": "webhook-twice"})
    shop.call("DELETE", "/control/scenario/")
    shop.call("PUT", "/control/faults/", {"faults": [{"when": {"nth": 2}, "then": {"status": 503}}]})
    shop.call("DELETE", "/control/faults/")
    shop.call("PATCH", "/control/project/", {"mode": "live"})
    shop.call("POST", "/control/reset/")
    shop.call("POST", "/control/projects/", {"mode": "live", "seed": 7})
    shop.call("GET", "/control/projects/review/")
    shop.call("GET", "/health/")


def _shorten(data: Any) -> Any:
    """Shorten long lists, and remove references, which tools would try to resolve."""
    if isinstance(data, dict):
        return {key: _shorten(value) for key, value in data.items() if key != "$ref"}
    return [_shorten(item) for item in data[:ITEMS_SHOWN_MAX]] if isinstance(data, list) else data
