"""A project driven over real HTTP; every response is validated against the API description."""

from __future__ import annotations

from typing import Any

import requests

from payment_sandbox.projects.project import Project
from payment_sandbox.serving.server import Server
from tests.support.described import check_answer

START = "2026-03-01T12:00:00.000000+00:00"
NOBODY = "00000000-0000-4000-8000-000000000000"
SOCKS = {"type": "physical", "merchant_order_line_id": "socks", "name": "Socks", "vat_percentage": 2100}
POSTAGE = {"type": "shipping_fee", "merchant_order_line_id": "post", "name": "Postage", "vat_percentage": 900}
LINES = [
    {**SOCKS, "amount": 500, "currency": "EUR", "quantity": 3},
    {**POSTAGE, "amount": 250, "currency": "EUR", "quantity": 2},
]
LINES_TOTAL = 2000
CUSTOMER = {"first_name": "Jan", "last_name": "de Vries", "email_address": "jan@example.com", "country": "NL"}


def card(**more: Any) -> dict[str, Any]:
    """Return a card transaction."""
    return {"payment_method": "credit-card", **more}


def details(**fields: Any) -> dict[str, Any]:
    """Return a card transaction with details."""
    return card(payment_method_details=fields)


def by(method: str, **more: Any) -> dict[str, Any]:
    """Return a transaction with any method, including the issuer if the method needs one."""
    if method == "bank-redirect-nl":
        more.setdefault("payment_method_details", {"issuer_id": "SBXANL2A"})
    return {"payment_method": method, **more}


class Sandbox:
    """A project with short methods for tests."""

    def __init__(self, server: Server, session: requests.Session | None = None, **settings: Any) -> None:
        self.server = server
        self.url = server.url
        self.http = session or requests.Session()
        settings.setdefault("clock", f"frozen@{START}")
        created = self.http.post(f"{self.url}/control/projects/", json=settings)
        assert created.status_code == 201, created.text
        self.project: dict[str, Any] = created.json()
        self.key: str = self.project["api_key"]

    # Calls

    @property
    def project_in_process(self) -> Project:
        """The project in this process."""
        project = self.server.registry.find(self.key)
        assert project is not None
        return project

    def call(self, method: str, path: str, json: Any = None, **options: Any) -> requests.Response:
        """Send any request with this project's key."""
        options.setdefault("auth", (self.key, ""))
        if json is not None:
            options["json"] = json
        answer = self.http.request(method, f"{self.url}{path}", allow_redirects=False, **options)
        check_answer(method, path, answer)
        return answer

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.call("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.call("POST", path, json, **options)

    def put(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.call("PUT", path, json, **options)

    def patch(self, path: str, json: Any = None, **options: Any) -> requests.Response:
        return self.call("PATCH", path, json, **options)

    def delete(self, path: str, **options: Any) -> requests.Response:
        return self.call("DELETE", path, **options)

    # Orders

    def create(self, *transactions: Any, **fields: Any) -> requests.Response:
        """Try to create an order; return the response."""
        body: dict[str, Any] = {"currency": "EUR", "amount": 1000, **fields}
        if transactions:
            body["transactions"] = list(transactions)
        return self.post("/v1/orders/", {key: value for key, value in body.items() if value is not ...})

    def place(self, *transactions: Any, **fields: Any) -> dict[str, Any]:
        """Create an order."""
        answer = self.create(*transactions, **fields)
        assert answer.status_code == 201, answer.text
        order: dict[str, Any] = answer.json()
        return order

    def place_with_lines(self, method: str, **more: Any) -> dict[str, Any]:
        """Create an order with lines and a customer, which screened methods need."""
        fields = {"amount": LINES_TOTAL, "order_lines": LINES, "customer": CUSTOMER}
        transaction = {key: more.pop(key) for key in ("capture_mode", "expiration_period") if key in more}
        return self.place(by(method, **transaction), **{**fields, **more})

    def read(self, order: dict[str, Any] | str, *blocks: str) -> dict[str, Any]:
        """Read the current state of an order."""
        order_id = order if isinstance(order, str) else order["id"]
        query = "&".join(f"fields[]={block}" for block in blocks)
        answer = self.get(f"/v1/orders/{order_id}/" + (f"?{query}" if query else ""))
        assert answer.status_code == 200, answer.text
        current: dict[str, Any] = answer.json()
        return current

    def status(self, order: dict[str, Any]) -> tuple[str, str]:
        """Return the statuses of an order and of its newest transaction."""
        current = self.read(order)
        return current["status"], current["transactions"][-1]["status"]

    def act(self, order: dict[str, Any], action: str, **more: Any) -> requests.Response:
        """Let a customer, bank, screening or processor act: ``act(order, "customer pay")``."""
        actor, _, name = action.partition(" ")
        return self.post(f"/control/orders/{order['id']}/act/", {"actor": actor, "action": name, **more})

    def acted(self, order: dict[str, Any], action: str, **more: Any) -> dict[str, Any]:
        """Call ``act`` and assert success."""
        answer = self.act(order, action, **more)
        assert answer.status_code == 200, answer.text
        updated: dict[str, Any] = answer.json()
        return updated

    def pay(self, order: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Let the customer pay."""
        return self.acted(order, "customer pay", **more)

    def take(self, order: dict[str, Any], kind: str, json: Any = None, **options: Any) -> requests.Response:
        """Capture or void, for example ``take(order, "captures/amount", {"amount": 5})``."""
        transaction = order["transactions"][-1]["id"]
        return self.post(f"/v1/orders/{order['id']}/transactions/{transaction}/{kind}/", json, **options)

    def authorized(self, **more: Any) -> dict[str, Any]:
        """Create and authorize a card payment of 2000 cents with lines."""
        more.setdefault("capture_mode", "manual")
        return self.pay(self.place_with_lines("credit-card", **more))

    # Time and scenario

    def advance(self, by: str | None = None, **target: Any) -> list[dict[str, Any]]:
        """Advance the clock; return the events."""
        answer = self.post("/control/clock/advance/", {"by": by, **target} if by is not None else target)
        assert answer.status_code == 200, answer.text
        events: list[dict[str, Any]] = answer.json()["events"]
        return events

    def settle(self) -> list[dict[str, Any]]:
        """Run everything that is due now, including webhooks."""
        return self.advance("PT0S")

    def now(self) -> str:
        """Return sandbox time."""
        time: str = self.get("/control/clock/").json()["now"]
        return time

    def scenario(self, *rules: dict[str, Any], **more: Any) -> None:
        """Activate a scenario with these rules."""
        answer = self.put("/control/scenario/", {"name": "of-the-test", "rules": list(rules), **more})
        assert answer.status_code == 200, answer.text

    def agenda(self) -> list[dict[str, Any]]:
        """Return the agenda."""
        items: list[dict[str, Any]] = self.get("/control/agenda/").json()["items"]
        return items

    def webhooks(self, **query: str) -> list[dict[str, Any]]:
        """Return the webhooks with their attempts."""
        items: list[dict[str, Any]] = self.get("/control/webhooks/", params=query).json()["items"]
        return items

    def settings(self, **settings: Any) -> None:
        """Change settings."""
        answer = self.patch("/control/project/", settings)
        assert answer.status_code == 200, answer.text


def refused(answer: requests.Response, status: int, kind: str) -> dict[str, Any]:
    """Assert a refusal with this status and type; return the error."""
    error: dict[str, Any] = answer.json()["error"]
    assert (answer.status_code, error["type"]) == (status, kind), answer.text
    return error


def violations(answer: requests.Response) -> dict[str, str]:
    """Assert violations; return their messages by path."""
    error = refused(answer, 400, "ValidationError")
    return {violation["path"]: violation["message"] for violation in error["violations"]}
