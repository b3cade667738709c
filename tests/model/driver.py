"""Sends the calls of the model to a sandbox; calls that no merchant can make go to its control API."""

from collections.abc import Mapping
from datetime import datetime
from itertools import cycle
from typing import Any

from tests.model.answers import UNKNOWN_ID, Json, ServiceAnswer
from tests.model.calling import Driver, MerchantCaller
from tests.model.specification import calls

ISSUER = "SBXANL2A"


class SessionCaller:
    """Calls servers in turn with a ``requests`` session, over HTTP or in process."""

    def __init__(self, session: Any, *urls: str) -> None:
        self._session, self._urls = session, cycle(urls)

    def __call__(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> ServiceAnswer:
        """Make a call to the next server."""
        answer = self._session.request(method, next(self._urls) + path, json=body, headers=headers)
        data = answer.json() if answer.content else None
        return ServiceAnswer(method, path, body, answer.status_code, answer.headers, data, answer.content)


class ControlDriver(Driver):
    """Drives one project of a sandbox."""

    def __init__(self, call: MerchantCaller) -> None:
        super().__init__(call, lambda: ISSUER, {})

    def send(self, call: calls.Call) -> ServiceAnswer:
        """Send a call of the model, and wait until its webhooks are delivered."""
        answer = super().send(call)
        self.call("GET", "/control/wait/?idle=1&timeout=10")
        return answer

    def _act(self, call: calls.Act) -> ServiceAnswer:
        body: Json = {"actor": call.actor, "action": call.action}
        if call.method:
            body["payment_method"] = call.method
        if call.amount is not None:
            body["amount"] = call.amount
        if call.card:
            body["card"] = call.card
        target = self.order_id(call.order)
        if call.refund is not None:
            target = self.ids.refunds[call.order][call.refund]
        return self.call("POST", f"/control/orders/{target}/act/", body)

    def _scan(self, call: calls.Scan) -> ServiceAnswer:
        code = self.ids.codes[call.code] if call.code < len(self.ids.codes) else UNKNOWN_ID
        body = {"issuer_id": ISSUER} | ({} if call.amount is None else {"amount": call.amount})
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
        rules = {"faults": [], "webhooks": webhooks}
        return self.call("PUT", "/control/faults/", rules)

    def webhooks(self, order_id: str) -> list[Json]:
        """List the webhooks of an order or refund, with the time of each attempt."""
        listed = self.call("GET", f"/control/webhooks/?order_id={order_id}")
        return [
            {
                "state": item["state"],
                "url": item["url"],
                "body": [attempt["request"]["body"] for attempt in item["attempts"]],
                "at": [datetime.fromisoformat(attempt["at"]) for attempt in item["attempts"]],
            }
            for item in listed.data["items"]
        ]
