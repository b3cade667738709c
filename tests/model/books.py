"""What holds in an engine after any calls, and what the reads of its API do not show."""

import itertools
import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.testing.clients.in_process import InProcess
from payment_sandbox.testing.project_fixture import PaymentSandbox
from payment_sandbox.web.answers.order_tables import amount_details
from tests.model.answers import ServiceAnswer
from tests.support.in_process import project_of


class CheckedCaller:
    """A caller of an engine in this process, without an HTTP client, which checks its books after each call."""

    def __init__(self, sandbox: PaymentSandbox) -> None:
        assert sandbox.server.in_process is not None, "only an engine in this process has books"
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
        """Make a call; a refused one must change nothing, and reads are not checked."""
        if method == "GET":
            return self._send(method, path, body, headers or {})
        before = self._state()
        answer = self._send(method, path, body, headers or {})
        if answer.status >= 400:
            assert self._state() == before, answer.summary
        for order in self._orders():
            check_order(order)
        return answer

    def _send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> ServiceAnswer:
        sent = b"" if body is None else json.dumps(body).encode()
        head = [*self._headers, *headers.items()]
        answer = self._in_process.send(method, self._url + path, head, sent, self._key, None)
        data = json.loads(answer.content or "null")
        return ServiceAnswer(method, path, body, answer.status_code, dict(answer.headers), data)

    def _orders(self) -> list[Order]:
        store = self._project.epoch.store
        return [self._project.find_order(order_id) for order_id in store.order_ids()]

    def _state(self) -> Any:
        epoch = self._project.epoch
        deliveries = [(each.id, len(each.attempts)) for each in epoch.store.deliveries()]
        agenda = [(due.at, due.sequence) for due in epoch.timeline]
        orders = {order.id: (order, order.version) for order in self._orders()}
        return orders, agenda, deliveries, epoch.state, epoch.timeline.now


def check_order(order: Order) -> None:
    """Assert that the amounts of an order balance, and that its statuses follow the tables."""
    details = amount_details(order)
    received = details.pop("received", None)
    assert received is None or received == order.received_cents > order.amount_cents
    assert details["captured"] + details["voided"] + details["remaining"] == details["original"]
    assert min(details.values()) >= 0
    assert 0 <= refundable_cents(order) <= order.received_cents
    assert order.status in ORDER_TRANSITIONS
    others = [attempt for attempt in order.transactions if attempt.is_open or attempt.is_capturable]
    if any(attempt.captured_cents >= order.amount_cents for attempt in order.transactions):
        assert not others, "a paid order must not ask for another payment"
    if not order.is_open:
        arrived = sum(each.captured_cents or each.credited_cents for each in order.transactions)
        assert order.received_cents == arrived, "no money that arrived may be lost"
    for attempt in order.transactions:
        path = [event.event for event in attempt.events]
        assert path[-1] == attempt.status
        for before, after in itertools.pairwise(path):
            assert after in TRANSACTION_TRANSITIONS[before].values()
        ledger = attempt.authorization
        if ledger is not None:
            parts = (ledger.captured_cents, ledger.voided_cents, ledger.remaining_cents)
            assert sum(parts) == ledger.original_cents == attempt.amount_cents
            assert min(parts) >= 0
            assert all(entry.amount_cents > 0 for entry in ledger.entries)
