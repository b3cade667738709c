"""Sends the calls of the model to a sandbox; calls that no merchant can make go to its control API."""

import json
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from payment_sandbox.testing.clients.in_process import InProcess
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.model.answers import Json, ServiceAnswer
from tests.model.specification import calls
from tests.support.driver import CUSTOMER, LINES, NOBODY
from tests.support.in_process import project_of

ISSUER: Final = "SBXANL2A"
ORDERS_PATH: Final = "/v1/orders/"
BLOCKS_QUERY: Final = "fields[]=amount_details&fields[]=order_line_details"
SAMPLE_LINES: Final = {line["merchant_order_line_id"]: line for line in LINES}


MerchantCaller = Callable[..., ServiceAnswer]
"""Makes a merchant call: method, path, body and ``headers``."""


class SessionCaller:
    """Calls a server with a ``requests`` session, over HTTP or in process."""

    def __init__(self, session: Any, url: str) -> None:
        self._session, self._url = session, url

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> ServiceAnswer:
        """Make a call."""
        answer = self._session.request(method, self._url + path, json=body, headers=headers)
        data = answer.json() if answer.content else None
        return ServiceAnswer(method, path, body, answer.status_code, answer.headers, data)


class CheckedCaller:
    """Calls an engine in this process, without an HTTP client, and checks that a refused call changes nothing."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        assert sandbox.server.in_process is not None, "its state can be compared"
        self._in_process = InProcess(sandbox.server.in_process)
        self._url, self._key = sandbox.base_url, sandbox.api_key
        self._headers = [
            ("Authorization", f"Basic {b64encode(f'{self._key}:'.encode()).decode()}"),
            ("Content-Type", "application/json"),
        ]
        self._project = project_of(sandbox)

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> ServiceAnswer:
        """Make a call."""
        if method == "GET":
            return self._send(method, path, body, headers or {})
        before = self._state()
        answer = self._send(method, path, body, headers or {})
        if answer.status >= 400:
            assert self._state() == before, answer.summary
        return answer

    def _send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> ServiceAnswer:
        sent = b"" if body is None else json.dumps(body).encode()
        head = [*self._headers, *headers.items()]
        answer = self._in_process.send(method, self._url + path, head, sent, self._key, None)
        data = json.loads(answer.content or "null")
        return ServiceAnswer(method, path, body, answer.status_code, dict(answer.headers), data)

    def _state(self) -> Any:
        epoch = self._project.epoch
        deliveries = [(each.id, len(each.attempts)) for each in epoch.store.deliveries()]
        agenda = [(due.at, due.sequence) for due in epoch.timeline]
        orders = [self._project.find_order(order_id) for order_id in epoch.store.order_ids()]
        return (
            orders,
            [order.version for order in orders],
            agenda,
            deliveries,
            epoch.state,
            epoch.timeline.now,
        )


@dataclass
class ServerIds:
    """The server's ids for the model's orders, refunds, QR codes and stored cards."""

    orders: list[str] = field(default_factory=list)
    refunds: list[list[str]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)


def without_none(**fields: Any) -> Json:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def portion_body(call: calls.Capture | calls.CreateRefund) -> Json:
    """Return the body of a capture, void or refund: amount and lines."""
    lines = [{"merchant_order_line_id": line, "quantity": quantity} for line, quantity in call.lines or ()]
    return without_none(amount=call.amount, order_lines=None if call.lines is None else lines)


class Driver:
    """A client of one project."""

    def __init__(self, call: MerchantCaller) -> None:
        self.ids = ServerIds()
        self.tags: dict[str, str] = {}
        self.call = call
        self._transactions: dict[str, list[str]] = {}

    def send(self, call: calls.Call) -> ServiceAnswer:
        """Send a call of the model, and wait until its webhooks are delivered."""
        answer: ServiceAnswer = getattr(self, f"_{type(call).__name__.lower()}")(call)
        self.call("GET", "/control/wait/?idle=1&timeout=60")
        return answer

    def order_id(self, number: int) -> str:
        """Return the id of an order, or an unknown id if the number is too large."""
        return self.ids.orders[number] if number < len(self.ids.orders) else NOBODY

    def _send_conditionally(
        self, method: str, body: Json | None, call: calls.Change, suffix: str = ""
    ) -> ServiceAnswer:
        tags = {"": "", "current": self.tags.get(self.order_id(call.order), ""), "stale": '"stale"'}
        tag = tags[call.if_match]
        path = f"{ORDERS_PATH}{self.order_id(call.order)}/{suffix}"
        return self.call(method, path, body, headers={"If-Match": tag} if tag else None)

    def _create(self, call: calls.Create) -> ServiceAnswer:
        body: Json = {"amount": call.amount, "currency": call.currency}
        texts = {"description": call.description, "webhook_url": call.webhook_url}
        body |= {name: text for name, text in texts.items() if text}
        if call.lines:
            body["order_lines"] = [
                {**SAMPLE_LINES[line.id], "amount": line.amount, "quantity": line.quantity}
                for line in call.lines
            ]
        if call.customer:
            body["customer"] = {**CUSTOMER, "email_address": f"{call.customer}@example.com"}
        if call.offered:
            body["payment_methods"] = list(call.offered)
        if call.method:
            body["transactions"] = [self._transaction_body(call)]
        elif call.period:
            body["expiration_period"] = call.period
        answer = self.call("POST", ORDERS_PATH, body)
        if answer.is_success:
            self.ids.orders.append(str(answer.at("id")))
            self.ids.refunds.append([])
        return answer

    def _transaction_body(self, call: calls.Create) -> Json:
        fields: Json = {"payment_method": call.method, "capture_mode": call.capture_mode}
        fields |= {"expiration_period": call.period, "payment_method_details": self._details_body(call)}
        return {name: value for name, value in fields.items() if value}

    def _details_body(self, call: calls.Create) -> Json:
        details: Json = {"cvc": call.cvc}
        if call.issuer:
            details["issuer_id"] = ISSUER if call.issuer == "known" else "NOBANKXX"
        if call.flow:
            kind = "one_click_type" if call.flow.endswith("one-click") else "recurring_type"
            details[kind] = "first" if call.flow.startswith("first") else call.flow
        if call.card is not None:
            details["vault_token"] = (*self.ids.cards, NOBODY)[min(call.card, len(self.ids.cards))]
        return {name: value for name, value in details.items() if value}

    def _update(self, call: calls.Update) -> ServiceAnswer:
        body = without_none(amount=call.amount, description=call.description)
        return self._send_conditionally("PUT", body, call)

    def _cancel(self, call: calls.Cancel) -> ServiceAnswer:
        return self._send_conditionally("DELETE", None, call)

    def _send_portion(self, kind: str, call: calls.Capture | calls.Void) -> ServiceAnswer:
        transactions = self._transactions.get(self.order_id(call.order), [])
        transaction = transactions[call.attempt] if call.attempt < len(transactions) else NOBODY
        suffix = {"": "", "lines": "orderlines/", "amount": "amount/"}[call.style]
        path = f"transactions/{transaction}/{kind}/{suffix}"
        return self._send_conditionally("POST", portion_body(call) or None, call, path)

    def _capture(self, call: calls.Capture) -> ServiceAnswer:
        return self._send_portion("captures", call)

    def _void(self, call: calls.Void) -> ServiceAnswer:
        return self._send_portion("voids", call)

    def _createrefund(self, call: calls.CreateRefund) -> ServiceAnswer:
        answer = self._send_conditionally("POST", portion_body(call), call, "refunds/")
        if answer.is_success:
            self.ids.refunds[call.order].append(str(answer.at("id")))
        return answer

    def _createcode(self, call: calls.CreateCode) -> ServiceAnswer:
        bounds = {"amount_min": call.smallest, "amount_max": call.largest}
        fields = {"amount_changeable": call.is_changeable, "one_off": call.is_one_off, "size": call.size}
        body = without_none(amount=call.amount, description="A code", **bounds, **fields)
        answer = self.call("POST", "/v1/bankqr/", body)
        if answer.is_success:
            self.ids.codes.append(str(answer.at("id")))
        return answer

    def read(self, number: int) -> ServiceAnswer:
        """Read an order with both blocks; remember its ETag, its transactions and its stored card."""
        order_id = self.ids.orders[number]
        answer = self.call("GET", f"{ORDERS_PATH}{order_id}/?{BLOCKS_QUERY}")
        self.tags[order_id] = answer.headers.get("ETag", "")
        attempts = answer.list_at("transactions")
        for attempt in attempts:
            details = attempt.get("payment_method_details") or {}
            token = details.get("vault_token")
            if token and "first" in details.values() and token not in self.ids.cards:
                self.ids.cards.append(token)
        self._transactions[order_id] = [str(attempt.get("id")) for attempt in attempts]
        return answer

    def read_refunds(self, number: int) -> list[ServiceAnswer]:
        """Read the refunds of an order."""
        return [self.call("GET", f"{ORDERS_PATH}{refund}/") for refund in self.ids.refunds[number]]

    def _act(self, call: calls.Act) -> ServiceAnswer:
        body: Json = {"actor": call.actor, "action": call.action}
        if call.method:
            body["payment_method"] = call.method
        if call.amount is not None and not call.arrives:
            body["amount"] = call.amount
        if call.card:
            body["card"] = call.card
        if call.attempt >= 0:
            body["transaction_id"] = self._transactions[self.order_id(call.order)][call.attempt]
        target = self.order_id(call.order)
        if call.refund is not None:
            target = self.ids.refunds[call.order][call.refund]
        if call.arrives:
            self._plan_credit(call)
        answer = self.call("POST", f"/control/orders/{target}/act/", body)
        if call.arrives:
            self.call("DELETE", "/control/scenario/")
        return answer

    def _plan_credit(self, call: calls.Act) -> None:
        credit = without_none(after=call.arrives, amount=call.amount)
        rule = {"when": {"payment_method": call.method}, "then": {"credit": credit}}
        answer = self.call("PUT", "/control/scenario/", {"name": "planned-credit", "rules": [rule]})
        assert answer.is_success, answer.data

    def _scan(self, call: calls.Scan) -> ServiceAnswer:
        code = self.ids.codes[call.code] if call.code < len(self.ids.codes) else NOBODY
        body = without_none(issuer_id=ISSUER, amount=call.amount)
        answer = self.call("POST", f"/control/bankqr/{code}/scan/", body)
        if answer.is_success:
            self.ids.orders.append(answer.at("id"))
            self.ids.refunds.append([])
        return answer

    def _advance(self, call: calls.Advance) -> ServiceAnswer:
        return self.call("POST", "/control/clock/advance/", {"by": call.by})

    def _setreachability(self, call: calls.SetReachability) -> ServiceAnswer:
        webhooks = [{"then": {"answer": 200}}]
        if not call.is_reachable:
            webhooks = [{"when": {"attempt": 1}, "then": {"answer": 404}}, {"then": {"answer": 503}}]
        return self.call("PUT", "/control/faults/", {"faults": [], "webhooks": webhooks})

    def webhooks(self) -> defaultdict[str, list[Json]]:
        """List the webhooks by order or refund, with the time of each attempt."""
        webhooks = defaultdict[str, list[Json]](list)
        for item in self.call("GET", "/control/webhooks/").data["items"]:
            attempts = item["attempts"]
            webhooks[item["order_id"]].append(
                {
                    "state": item["state"],
                    "url": item["url"],
                    "body": [attempt["request"]["body"] for attempt in attempts],
                    "at": [datetime.fromisoformat(attempt["at"]) for attempt in attempts],
                }
            )
        return webhooks
