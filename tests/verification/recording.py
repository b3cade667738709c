"""A shop's traffic with a service, recorded as HAR."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox_verify.verifying import Model, model

LINES = [{"merchant_order_line_id": "socks", "name": "Socks", "amount": 500, "quantity": 2}]
CUSTOMER = {"first_name": "Jan", "country": "NL", "email_address": "jan@example.com"}
START = datetime.fromisoformat("2026-05-04T10:00:00+00:00")
Change = Callable[[dict[str, Any]], None]


class Recorder:
    """Makes calls, and keeps them as entries of a HAR file; ``passed`` moves the time on."""

    def __init__(self, own: Model) -> None:
        self.own = own
        self.entries: list[dict[str, Any]] = []
        self.at = START

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make a call, and record it as a browser does."""
        answer = self.own.service.call(method, path, body)
        request: dict[str, Any] = {"method": method, "url": f"https://api.provider.example{path}"}
        if body is not None:
            request["postData"] = {"mimeType": "application/json", "text": json.dumps(body)}
        headers = [{"name": name, "value": value} for name, value in answer.headers.items()]
        content = {"mimeType": "application/json", "text": answer.content.decode()}
        response = {"status": answer.status, "headers": headers, "content": content}
        self.entries.append(
            {"startedDateTime": self.at.isoformat(), "request": request, "response": response}
        )
        return answer.data

    def act(self, order: Any, actor: Actor, action: ActionName) -> None:
        """Somebody does something that no recording shows."""
        self.own.client.act(order["id"], actor, action)

    def passed(self, time: timedelta) -> None:
        """Time goes by."""
        self.at += time
        self.own.client.clock.advance(time)


def shop(recorder: Recorder) -> None:
    """What a shop does on a day: a sale with a refund, an authorization, an invoice, a code, mistakes."""
    sale = recorder.call("POST", "/v1/orders/", _order([{"payment_method": "credit-card"}]))
    recorder.call("GET", f"/v1/orders/{sale['id']}/")
    recorder.act(sale, "customer", "pay")
    recorder.passed(timedelta(minutes=2))
    recorder.call("GET", f"/v1/orders/{sale['id']}/")
    refund = recorder.call("POST", f"/v1/orders/{sale['id']}/refunds/", {"amount": 400})
    recorder.call("GET", f"/v1/orders/{refund['id']}/")
    recorder.call("POST", f"/v1/orders/{sale['id']}/refunds/", {"amount": 900})
    held = [{"payment_method": "invoice-later-b"}]
    invoice = recorder.call("POST", "/v1/orders/", _order(held, order_lines=LINES, customer=CUSTOMER))
    place = f"/v1/orders/{invoice['id']}/transactions/{invoice['transactions'][0]['id']}"
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}], "description": "One"}
    recorder.call("POST", f"{place}/captures/orderlines/", lines)
    recorder.call("GET", f"/v1/orders/{invoice['id']}/?fields[]=order_line_details")
    late = recorder.call("POST", "/v1/orders/", _order([{"payment_method": "credit-card"}]))
    recorder.passed(timedelta(hours=1))
    recorder.call("GET", f"/v1/orders/{late['id']}/")
    cancelled = recorder.call("POST", "/v1/orders/", _order(None))
    recorder.act(cancelled, "customer", "visit")
    recorder.call("GET", f"/v1/orders/{cancelled['id']}/")
    recorder.call("DELETE", f"/v1/orders/{cancelled['id']}/")
    code = {"amount": 1000, "description": "Socks", "webhook_url": "https://shop.invalid/webhook"}
    recorder.call("POST", "/v1/bankqr/", code)
    recorder.call("POST", "/v1/orders/", _order(None, currency="USD"))


def _order(transactions: Any, **more: Any) -> dict[str, Any]:
    found = {"currency": "EUR", "amount": 1000, "description": "Socks", **more}
    return found if transactions is None else {**found, "transactions": transactions}


def recorded(file: Path, change: Change | None = None, do: Callable[[Recorder], None] = shop) -> Path:
    """Write a HAR file of a shop's day; ``change`` makes every answer's JSON another one."""
    with model({"clock": f"frozen@{START.isoformat()}"}) as own:
        recorder = Recorder(own)
        do(recorder)
    for entry in recorder.entries:
        content = entry["response"]["content"]
        data = json.loads(content["text"])
        if change is not None:
            change(entry | {"data": data})
        content["text"] = json.dumps(data)
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": recorder.entries}}), encoding="utf-8")
    return file
