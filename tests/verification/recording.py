"""A shop's traffic with a service, recorded as HAR."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from payment_sandbox.orders.actions import ActionName, Actor
from payment_sandbox_verify.player import SandboxPlayer
from payment_sandbox_verify.verifying import reference_sandbox
from tests.verification.exchanges import AlteringSession

LINES = [{"merchant_order_line_id": "socks", "name": "Socks", "amount": 500, "quantity": 2}]
CUSTOMER = {"first_name": "Jan", "country": "NL", "email_address": "jan@example.com"}
START = datetime.fromisoformat("2026-05-04T10:00:00+00:00")
Change = Callable[[dict[str, Any]], None]


class Recorder:
    """Makes calls and records them as HAR entries; ``advance`` moves the clock forward."""

    def __init__(self, reference: SandboxPlayer) -> None:
        self.reference, self.control = reference, reference.control
        self.entries: list[dict[str, Any]] = []
        self.at = START
        self.etag = ""  # of the last answer

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        raw: str | None = None,
        key: str | None = None,
        **header_fields: str,
    ) -> Any:
        """Make a call, and record it as a browser does; a header ``if_match`` is ``If-Match``."""
        request_headers = {name.replace("_", "-"): value for name, value in header_fields.items()}
        raw_bytes = raw.encode() if raw is not None else None
        answer = self.reference.service.call(
            method, path, body, content=raw_bytes, key=key, headers=request_headers
        )
        request: dict[str, Any] = {"method": method, "url": f"https://api.provider.example{path}"}
        request["headers"] = [{"name": name, "value": value} for name, value in request_headers.items()]
        if raw is not None or body is not None:
            text = raw if raw is not None else json.dumps(body)
            request["postData"] = {"mimeType": "application/json", "text": text}
        self.etag = answer.headers.get("ETag", "")
        headers = [{"name": name, "value": value} for name, value in answer.headers.items()]
        content = {"mimeType": "application/json", "text": answer.content.decode()}
        response = {"status": answer.status, "headers": headers, "content": content}
        self.entries.append(
            {"startedDateTime": self.at.isoformat(), "request": request, "response": response}
        )
        return answer.data

    def act(self, order: Any, actor: Actor, action: ActionName, **parameters: Any) -> None:
        """Perform an action that is not part of the recording."""
        self.control.act(order["id"], actor, action, **parameters)

    def advance(self, time: timedelta) -> None:
        self.at += time
        self.control.clock.advance(time)


def play_shop_day(recorder: Recorder) -> None:
    """Play a shop's day: a sale with a refund, an authorization, an invoice, a QR code, and mistakes."""
    sale = recorder.call("POST", "/v1/orders/", _order([{"payment_method": "credit-card"}]))
    recorder.call("GET", f"/v1/orders/{sale['id']}/")
    recorder.act(sale, "customer", "pay")
    recorder.advance(timedelta(minutes=2))
    recorder.call("GET", f"/v1/orders/{sale['id']}/")
    refund = recorder.call("POST", f"/v1/orders/{sale['id']}/refunds/", {"amount": 400})
    recorder.call("GET", f"/v1/orders/{refund['id']}/")
    recorder.call("POST", f"/v1/orders/{sale['id']}/refunds/", {"amount": 900})
    held = [{"payment_method": "invoice-later-b"}]
    invoice = recorder.call("POST", "/v1/orders/", _order(held, order_lines=LINES, customer=CUSTOMER))
    path = f"/v1/orders/{invoice['id']}/transactions/{invoice['transactions'][0]['id']}"
    lines = {"order_lines": [{"merchant_order_line_id": "socks", "quantity": 1}], "description": "One"}
    recorder.call("POST", f"{path}/captures/orderlines/", lines)
    recorder.call("GET", f"/v1/orders/{invoice['id']}/?fields[]=order_line_details")
    late = recorder.call("POST", "/v1/orders/", _order([{"payment_method": "credit-card"}]))
    recorder.advance(timedelta(hours=1))
    recorder.call("GET", f"/v1/orders/{late['id']}/")
    cancelled = recorder.call("POST", "/v1/orders/", _order(None))
    recorder.act(cancelled, "customer", "visit")
    recorder.call("GET", f"/v1/orders/{cancelled['id']}/")
    recorder.call("DELETE", f"/v1/orders/{cancelled['id']}/")
    code = {"amount": 1000, "description": "Socks", "webhook_url": "https://shop.invalid/webhook"}
    recorder.call("POST", "/v1/bankqr/", code)
    recorder.call("POST", "/v1/orders/", _order(None, currency="USD"))


def play_careful_shop(recorder: Recorder) -> None:
    """Play conditions, repeated and invalid requests, hosted page attempts, a screening, and a scan."""
    held = [{"payment_method": "credit-card", "capture_mode": "manual"}]
    order = recorder.call("POST", "/v1/orders/", _order(held))
    path = f"/v1/orders/{order['id']}/"
    recorder.call("DELETE", path, if_match='"stale"')
    recorder.call("GET", path)
    recorder.call("GET", path, if_none_match=recorder.etag)
    recorder.act(order, "customer", "pay")
    capture = f"{path}transactions/{order['transactions'][0]['id']}/captures/amount/"
    recorder.call("POST", capture, {"amount": 400})
    recorder.call("GET", path)
    for _ in range(2):
        recorder.call("POST", capture, {"amount": 100}, if_match=recorder.etag)
    for amount in (500, 500, 600):
        body = {"currency": "EUR", "amount": amount}
        recorder.call("POST", "/v1/orders/", body, idempotency_key="once")
    recorder.call("POST", "/v1/orders/", raw='{"currency": "EUR", "amount": 1, "amount": 2}')
    recorder.call("POST", "/v1/orders/", raw="amount=1", content_type="text/plain")
    recorder.call("POST", "/v1/orders/", _order(None), key="wrong")
    hosted = recorder.call("POST", "/v1/orders/", _order(None))
    recorder.act(hosted, "customer", "choose", payment_method="credit-card")
    recorder.act(hosted, "customer", "fail")
    recorder.call("GET", f"/v1/orders/{hosted['id']}/")
    recorder.act(hosted, "customer", "choose", payment_method="wallet-web")
    recorder.act(hosted, "customer", "pay")
    recorder.call("GET", f"/v1/orders/{hosted['id']}/")
    slow = {**CUSTOMER, "email_address": "needs-time@example.com"}
    later = [{"payment_method": "pay-later-a"}]
    screened = recorder.call("POST", "/v1/orders/", _order(later, order_lines=LINES, customer=slow))
    recorder.act(screened, "screening", "approve")
    recorder.call("GET", f"/v1/orders/{screened['id']}/")
    code = recorder.call("POST", "/v1/bankqr/", {"amount": 1000, "description": "Socks"})
    scanned = recorder.control.scan(code["id"])
    recorder.act(scanned, "customer", "pay")
    recorder.call("GET", f"/v1/orders/{scanned['id']}/")


def _order(transactions: Any, **fields: Any) -> dict[str, Any]:
    order = {"currency": "EUR", "amount": 1000, "description": "Socks", **fields}
    return order if transactions is None else {**order, "transactions": transactions}


def record_har(
    file: Path,
    change: Change | None = None,
    play: Callable[[Recorder], None] = play_shop_day,
    session: AlteringSession | None = None,
    **settings: Any,
) -> Path:
    """Write a HAR file of a shop's day; ``change`` alters each entry, and ``session`` each exchange."""
    with reference_sandbox({"clock": f"frozen@{START.isoformat()}", **settings}) as reference:
        reference.service._session = session or reference.service._session
        recorder = Recorder(reference)
        play(recorder)
    for entry in recorder.entries:
        content = entry["response"]["content"]
        if not content["text"]:  # a 304 response has none
            continue
        data = json.loads(content["text"])
        if change is not None:
            change(entry | {"data": data})
        content["text"] = json.dumps(data)
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": recorder.entries}}), encoding="utf-8")
    return file
