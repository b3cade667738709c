"""The flows in the documentation, played in memory and drawn like the orders of the dashboard."""

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.operations.deliver_webhook import prepare_attempt, record_attempt
from payment_sandbox.operations.history import history
from payment_sandbox.orders.webhooks import Reply
from payment_sandbox.projects.clock import ClockStart, RealTime
from payment_sandbox.projects.project import Services
from payment_sandbox.serving.app import make_app
from payment_sandbox.ui.pictures import draw_sequence, svg
from tests.documentation.examples import LINES, START_TIME, Shop
from tests.support.projects import made_registry

if TYPE_CHECKING:
    from payment_sandbox.projects.epoch import Epoch
    from payment_sandbox.projects.outbox import OutboxEntry
    from payment_sandbox.projects.project import Project

WEBHOOK_URL: Final = "https://shop.example/webhook"
CUSTOMER: Final = {"first_name": "Jan", "last_name": "de Vries", "email_address": "jan@example.com"}


FlowSteps = Generator[dict[str, Any], dict[str, Any], None]
"""The steps of a flow: a generator that yields the order to draw, and receives the order back."""


class SimulatedShop(Services):
    """Services with a simulated shop, which reads the order and then answers the webhook at once."""

    def __init__(self, real: RealTime, read_order: Callable[[str], None]) -> None:
        super().__init__(real)
        self._read = read_order

    def deliver_outbox(self, project: "Project", epoch: "Epoch") -> None:
        """Deliver the queued webhooks."""
        while (entry := epoch.outbox.next()) is not None:
            self.deliver(project, epoch, entry)

    def deliver(self, project: "Project", epoch: "Epoch", entry: "OutboxEntry") -> None:
        """Have the shop read the order and answer 204, unless the scenario decides the answer."""
        prepared = prepare_attempt(project, epoch, entry)
        if prepared is None:
            return
        if prepared.reply is None:
            self._read(entry.queued.order_id)
        elapsed_ms = (self.real.wall_now() - prepared.real_at) / timedelta(milliseconds=1)
        record_attempt(project, epoch, prepared, prepared.reply or Reply(elapsed_ms, status=204))


class Flow:
    """The participants of a flow: a shop, its customers, and their banks."""

    def __init__(self, **settings: Any) -> None:
        start = ClockStart.parse(START_TIME).at
        assert start is not None, "the start time must be frozen"
        ticks = count()
        real = RealTime(lambda: start + timedelta(milliseconds=next(ticks)), lambda: 0.0)
        registry = made_registry(1, START_TIME, SimulatedShop(real, self._read))
        self.project, api_key = registry.create({"webhook_url": WEBHOOK_URL, **settings})
        self.shop = Shop(make_app(registry, public_url="http://127.0.0.1:8080"), api_key)

    def order(self, method: str | None = None, **fields: Any) -> dict[str, Any]:
        """Create an order."""
        details = fields.pop("details", None)
        attempt = {"payment_method": method, **fields.pop("attempt", {})}
        if details is not None:
            attempt["payment_method_details"] = details
        body = {"currency": "EUR", "amount": 1295, **fields}
        if method is not None:
            body["transactions"] = [attempt]
        created: dict[str, Any] = self.shop.call("POST", "/v1/orders/", body)
        return created

    def act(self, order: Mapping[str, Any], step: str, **details: Any) -> None:
        """Perform an action, such as ``customer pay``."""
        actor, _, action = step.partition(" ")
        self.shop.call(
            "POST", f"/control/orders/{order['id']}/act/", {"actor": actor, "action": action, **details}
        )

    def advance(self, by: str) -> None:
        """Advance the clock."""
        self.shop.call("POST", "/control/clock/advance/", {"by": by})

    def capture_or_void(self, order: Mapping[str, Any], path: str, body: Any) -> None:
        """Capture or void a part of the order; ``path`` is the call's path, such as ``captures/amount``."""
        transaction = f"/v1/orders/{order['id']}/transactions/{order['transactions'][0]['id']}"
        self.shop.call("POST", f"{transaction}/{path}/", body)

    def _read(self, order_id: str) -> None:
        self.shop.call("GET", f"/v1/orders/{order_id}/")


def _hosted_page(flow: Flow) -> FlowSteps:
    order = yield flow.order(order_lines=LINES)
    flow.act(order, "customer visit")
    flow.act(order, "customer choose", payment_method="credit-card")
    flow.act(order, "customer pay")


def _redirect(flow: Flow) -> FlowSteps:
    order = yield flow.order("bank-redirect-nl", details={"issuer_id": "SBXANL2A"})
    flow.act(order, "customer visit")
    flow.advance("PT40S")
    flow.act(order, "customer pay")


def _authorization(flow: Flow) -> FlowSteps:
    order = yield flow.order("credit-card", attempt={"capture_mode": "manual", "expiration_period": "P7D"})
    flow.act(order, "customer pay")
    flow.advance("P2D")
    flow.capture_or_void(order, "captures/amount", {"amount": 1000})
    flow.capture_or_void(order, "voids/amount", {"amount": 295})


def _recurring(flow: Flow) -> FlowSteps:
    first = flow.order("credit-card", details={"recurring_type": "first"})
    flow.act(first, "customer pay")
    token = flow.shop.call("GET", f"/v1/orders/{first['id']}/")
    details = token["transactions"][0]["payment_method_details"]
    flow.advance("P1M")
    yield flow.order(
        "credit-card", details={"recurring_type": "recurring", "vault_token": details["vault_token"]}
    )
    flow.advance("PT1M")


def _pay_later(flow: Flow) -> FlowSteps:
    order = yield flow.order("pay-later-a", order_lines=LINES, customer=CUSTOMER)
    flow.act(order, "customer visit")
    flow.act(order, "customer pay")
    flow.advance("P1D")
    flow.capture_or_void(order, "captures", {})


def _bank_transfer(flow: Flow) -> FlowSteps:
    order = yield flow.order("bank-transfer")
    flow.advance("P2D")
    flow.act(order, "bank credit")


def _bank_qr(flow: Flow) -> FlowSteps:
    qr_code = flow.shop.call("POST", "/v1/bankqr/", {"amount": 1295})
    order = yield flow.shop.call("POST", f"/control/bankqr/{qr_code['id']}/scan/", {})
    flow.act(order, "customer pay")


def _refunds(flow: Flow) -> FlowSteps:
    order = yield flow.order("credit-card")
    flow.act(order, "customer pay")
    flow.advance("P3D")
    flow.shop.call("POST", f"/v1/orders/{order['id']}/refunds/", {"amount": 500})
    flow.shop.call("POST", f"/v1/orders/{order['id']}/refunds/", {"amount": 5000})


def _webhooks(flow: Flow) -> FlowSteps:
    rules = [{"when": {"status": "completed", "attempt": 1}, "then": {"answer": 503}}]
    flow.shop.call("PUT", "/control/faults/", {"webhooks": rules})
    order = yield flow.order("credit-card")
    flow.act(order, "customer pay")
    flow.advance("PT2M")


class Script(NamedTuple):
    """A flow: its title, its steps, and the mode of its project."""

    title: str
    steps: Callable[[Flow], FlowSteps]
    mode: str = "test"


FLOWS: Final[Mapping[str, Script]] = {
    "hosted-page": Script("A customer chooses a method on the hosted page and pays", _hosted_page),
    "redirect": Script("A customer pays at their bank", _redirect),
    "authorization-and-capture": Script("A card is authorized, captured in part, and voided", _authorization),
    "one-click-and-recurring": Script(
        "The second payment of a series takes place without the customer", _recurring
    ),
    "pay-later": Script("The screening passes, the customer authorizes, the shop captures", _pay_later),
    "bank-transfer": Script("A bank transfer arrives two days later", _bank_transfer, "live"),
    "bank-qr": Script("A payer scans a QR code and pays", _bank_qr),
    "refunds": Script("A partial refund, and a refused refund of more than the remaining amount", _refunds),
    "webhooks": Script("A webhook is answered with an error and retried", _webhooks),
}


def draw_flow(name: str) -> str:
    """Draw a flow as an SVG file."""
    script = FLOWS[name]
    flow = Flow(mode=script.mode)
    steps = script.steps(flow)
    order = next(steps)
    with suppress(StopIteration):
        steps.send(order)
    drawing = draw_sequence(history(flow.project.epoch, order["id"]))
    return svg(drawing, title=script.title, is_file=True)
