"""Sends the calls of the model to a server, and reads what the merchant sees."""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from itertools import cycle
from typing import Any, Protocol
from uuid import UUID

from payment_sandbox_verify.model import calls
from payment_sandbox_verify.model.records import Line

Json = dict[str, Any]
STRANGER = str(UUID(int=4))
ISSUER = "SBXANL2A"
BLOCKS = "fields[]=amount_details&fields[]=order_line_details"


class Door(Protocol):
    """A way to a server."""

    def exchange(
        self, method: str, path: str, body: Any = None, headers: Json | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Make a call; return status, parsed body and headers."""
        ...


class SessionDoor:
    """A way to servers by a ``requests`` session, over HTTP or in process: to one after the other."""

    def __init__(self, session: Any, *urls: str) -> None:
        self._session, self._urls = session, cycle(urls)

    def exchange(
        self, method: str, path: str, body: Any = None, headers: Json | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        answer = self._session.request(method, next(self._urls) + path, json=body, headers=headers)
        return answer.status_code, answer.json() if answer.content else None, answer.headers


@dataclass
class Names:
    """The server's identifiers of the orders, refunds, codes and first payments of the model."""

    orders: list[str] = field(default_factory=list)
    refunds: list[list[str]] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    cards: list[str] = field(default_factory=list)

    def copy(self) -> "Names":
        """Copy them, for a snapshot."""
        return deepcopy(self)


def lines_of(lines: tuple[Line, ...]) -> list[Json]:
    """The order lines of a request."""
    return [
        {"merchant_order_line_id": line.id, "amount": line.amount, "quantity": line.quantity, "name": line.id}
        | {"type": "physical", "currency": "EUR", "vat_percentage": 2100}
        for line in lines
    ]


def wanted(call: Any) -> Json:
    """The amount and the lines of a capture, void or refund."""
    body: Json = {} if call.amount is None else {"amount": call.amount}
    if call.lines is not None:
        body["order_lines"] = [
            {"merchant_order_line_id": line, "quantity": quantity} for line, quantity in call.lines
        ]
    return body


class Driver:
    """One project of a server."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.names = Names()
        self.tags: dict[str, str] = {}

    def send(self, call: calls.Call) -> tuple[int, Any]:
        """Send a call of the model; return the status and the body of the answer."""
        status, body = getattr(self, f"_{type(call).__name__.lower()}")(call)
        self.door.exchange("GET", "/control/wait/?idle=1&timeout=10")
        return status, body

    def _call(
        self, method: str, path: str, body: Any = None, if_match: str = "", order: int = 0
    ) -> tuple[int, Any]:
        tag = {"": None, "current": self.tags.get(self._order(order)), "stale": '"stale"'}[if_match]
        status, answer, _ = self.door.exchange(method, path, body, {"If-Match": tag} if tag else None)
        return status, answer

    def _order(self, number: int) -> str:
        return self.names.orders[number] if number < len(self.names.orders) else STRANGER

    def _transaction(self, order: int, attempt: int) -> str:
        _, shown, _ = self.door.exchange("GET", f"/v1/orders/{self._order(order)}/")
        listed = shown.get("transactions", [])
        return str(listed[attempt]["id"]) if attempt < len(listed) else STRANGER

    def _create(self, call: calls.Create) -> tuple[int, Any]:
        body: Json = {"amount": call.amount, "currency": call.currency}
        texts = {"description": call.description, "webhook_url": call.webhook_url}
        body |= {name: text for name, text in texts.items() if text}
        if call.lines:
            body["order_lines"] = lines_of(call.lines)
        if call.customer:
            body["customer"] = {"email_address": f"{call.customer}@example.com", "first_name": "Jan"}
        if call.offered:
            body["payment_methods"] = list(call.offered)
        if call.method:
            body["transactions"] = [self._attempt_of(call)]
        elif call.period:
            body["expiration_period"] = call.period
        status, answer, _ = self.door.exchange("POST", "/v1/orders/", body)
        if status == 201:
            self.names.orders.append(answer["id"])
            self.names.refunds.append([])
        return status, answer

    def _attempt_of(self, call: calls.Create) -> Json:
        attempt: Json = {"payment_method": call.method}
        details: Json = {}
        if call.capture_mode:
            attempt["capture_mode"] = call.capture_mode
        if call.period:
            attempt["expiration_period"] = call.period
        if call.issuer:
            details["issuer_id"] = ISSUER if call.issuer == "known" else call.issuer
        if call.flow:
            kind = "one_click_type" if call.flow.endswith("one-click") else "recurring_type"
            details[kind] = "first" if call.flow.startswith("first") else call.flow
        if call.card is not None:
            details["vault_token"] = (
                self.names.cards[call.card] if call.card < len(self.names.cards) else STRANGER
            )
        if call.cvc:
            details["cvc"] = call.cvc
        return attempt | ({"payment_method_details": details} if details else {})

    def _update(self, call: calls.Update) -> tuple[int, Any]:
        body = {"amount": call.amount, "description": call.description}
        body = {name: value for name, value in body.items() if value is not None}
        return self._call("PUT", f"/v1/orders/{self._order(call.order)}/", body, call.if_match, call.order)

    def _cancel(self, call: calls.Cancel) -> tuple[int, Any]:
        return self._call("DELETE", f"/v1/orders/{self._order(call.order)}/", None, call.if_match, call.order)

    def _change(self, kind: str, call: calls.Capture | calls.Void) -> tuple[int, Any]:
        transaction = self._transaction(call.order, call.attempt)
        path = f"/v1/orders/{self._order(call.order)}/transactions/{transaction}/{kind}/"
        path += "orderlines/" if call.lines is not None else "amount/" if call.amount is not None else ""
        return self._call("POST", path, wanted(call) or None, call.if_match, call.order)

    def _capture(self, call: calls.Capture) -> tuple[int, Any]:
        return self._change("captures", call)

    def _void(self, call: calls.Void) -> tuple[int, Any]:
        return self._change("voids", call)

    def _makerefund(self, call: calls.MakeRefund) -> tuple[int, Any]:
        path = f"/v1/orders/{self._order(call.order)}/refunds/"
        status, answer = self._call("POST", path, wanted(call), call.if_match, call.order)
        if status == 201:
            self.names.refunds[call.order].append(answer["id"])
        return status, answer

    def _createcode(self, call: calls.CreateCode) -> tuple[int, Any]:
        body = {
            "amount": call.amount,
            "amount_changeable": call.is_changeable,
            "amount_min": call.smallest,
            "amount_max": call.largest,
            "one_off": call.is_one_off,
            "size": call.size,
            "description": "A code",
        }
        body = {name: value for name, value in body.items() if value is not None}
        status, answer, _ = self.door.exchange("POST", "/v1/bankqr/", body)
        if status == 201:
            self.names.codes.append(answer["id"])
        return status, answer

    def _act(self, call: calls.Act) -> tuple[int, Any]:
        body: Json = {"actor": call.actor, "action": call.action}
        if call.method:
            body["payment_method"] = call.method
        if call.amount is not None:
            body["amount"] = call.amount
        if call.card:
            body["card"] = call.card
        target = self._order(call.order)
        if call.refund is not None:
            target = self.names.refunds[call.order][call.refund]
        status, answer, _ = self.door.exchange("POST", f"/control/orders/{target}/act/", body)
        return status, answer

    def _scan(self, call: calls.Scan) -> tuple[int, Any]:
        code = self.names.codes[call.code] if call.code < len(self.names.codes) else STRANGER
        body = {"issuer_id": ISSUER} | ({} if call.amount is None else {"amount": call.amount})
        status, answer, _ = self.door.exchange("POST", f"/control/bankqr/{code}/scan/", body)
        if status == 201:
            self.names.orders.append(answer["id"])
            self.names.refunds.append([])
        return status, answer

    def _advance(self, call: calls.Advance) -> tuple[int, Any]:
        status, answer, _ = self.door.exchange("POST", "/control/clock/advance/", {"by": call.by})
        return status, answer

    def _answer(self, call: calls.Answer) -> tuple[int, Any]:
        answer = 200 if call.is_reachable else 503
        rules = {"faults": [], "webhooks": [{"then": {"answer": answer}}]}
        status, body, _ = self.door.exchange("PUT", "/control/faults/", rules)
        return status, body

    def read(self, number: int) -> Json:
        """Read an order and its refunds as the merchant sees them, with the webhooks that were sent."""
        order_id = self.names.orders[number]
        _, shown, headers = self.door.exchange("GET", f"/v1/orders/{order_id}/?{BLOCKS}")
        self.tags[order_id] = headers.get("ETag", "")
        refunds = []
        for refund_id in self.names.refunds[number]:
            _, refund, _ = self.door.exchange("GET", f"/v1/orders/{refund_id}/")
            refunds.append(refund | {"webhooks": self.webhooks(refund_id)})
        for attempt in shown["transactions"]:
            token = attempt["payment_method_details"].get("vault_token")
            is_first = "first" in attempt["payment_method_details"].values()
            if token and is_first and token not in self.names.cards:
                self.names.cards.append(token)
        return dict(shown) | {
            "refunds": refunds,
            "webhooks": self.webhooks(order_id),
            "etag": headers.get("ETag"),
        }

    def webhooks(self, order_id: str) -> list[Json]:
        """List the webhooks of an order or refund, with the time of each attempt."""
        _, listed, _ = self.door.exchange("GET", f"/control/webhooks/?order_id={order_id}")
        return [
            {
                "state": item["state"],
                "url": item["url"],
                "body": [attempt["request"]["body"] for attempt in item["attempts"]],
                "at": [datetime.fromisoformat(attempt["at"]) for attempt in item["attempts"]],
            }
            for item in listed["items"]
        ]
