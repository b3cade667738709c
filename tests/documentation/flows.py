"""The flows in the documentation, played in memory and drawn like the orders of the dashboard."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.delivery.outbox import DeliveringOutbox
from payment_sandbox.delivery.receivers import DeliveryOutcome, PreparedAttempt
from payment_sandbox.judge.history import history
from payment_sandbox.orders.webhooks import Reply
from payment_sandbox.projects.clock import RealTime, Start
from payment_sandbox.projects.project import Services
from payment_sandbox.serving.app import make_app
from payment_sandbox.ui.pictures import draw_sequence, svg
from tests.documentation.examples import LINES, START_TIME, Shop
from tests.support.projects import made_registry

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project
    from payment_sandbox.projects.queued_deliveries import Outbox

WEBHOOK_URL: Final = "https://shop.example/webhook"
CUSTOMER: Final = {"first_name": "Jan", "last_name": "de Vries", "email_address": "jan@example.com"}


class SimulatedShop(Services):
    """Services with a simulated shop, which reads the order and then answers the webhook at once."""

    def __init__(self, real: RealTime, read_order: Callable[[str], None]) -> None:
        super().__init__(real)
        self._read = read_order

    def create_outbox(self, project: "Project") -> "Outbox":
        """Create an outbox whose webhooks the simulated shop answers."""
        return DeliveringOutbox(project, self)

    def run(self, work: Callable[[], None]) -> None:
        """Deliver on this thread."""
        work()

    def pause(self, seconds: float) -> bool:
        """Wait for nobody."""
        return False

    def delivers_on_waiting_thread(self, project: "Project") -> bool:
        """Let no thread wait."""
        return False

    def receiver(self, project: "Project", url: str) -> "SimulatedShop":
        """Return the shop."""
        return self

    def post(self, attempt: PreparedAttempt) -> list[DeliveryOutcome]:
        """Have the shop read the order and answer 204."""
        self._read(attempt.queued.order_id)
        elapsed_ms = (self.real.wall_now() - attempt.real_at) / timedelta(milliseconds=1)
        return [DeliveryOutcome(Reply(elapsed_ms, status=204), attempt.real_at)]


class Flow:
    """The participants of a flow: a shop, its customers, and their banks; ``order`` is the newest order."""

    def __init__(self, **settings: Any) -> None:
        start = Start.parse(START_TIME).at
        assert start is not None, "the start time must be frozen"
        ticks = count()
        real = RealTime(lambda: start + timedelta(milliseconds=next(ticks)), lambda: 0.0)
        registry = made_registry(1, START_TIME, SimulatedShop(real, self._read))
        self.project, api_key = registry.create({"webhook_url": WEBHOOK_URL, **settings})
        self.shop = Shop(make_app(registry, public_url="http://127.0.0.1:8080"), api_key)
        self.order: dict[str, Any] = {}

    def play(self, step: str, **body: Any) -> None:
        """Play a step: a period, an action such as ``customer pay``, or a call of the shop such as ``refunds``."""
        if step.startswith("P"):
            self.shop.call("POST", "/control/clock/advance/", {"by": step})
        elif " " in step:
            actor, _, action = step.partition(" ")
            path = f"/control/orders/{self.order['id']}/act/"
            self.shop.call("POST", path, {"actor": actor, "action": action, **body})
        elif step == "refunds":
            self.shop.call("POST", f"/v1/orders/{self.order['id']}/refunds/", body)
        else:
            transaction = f"/v1/orders/{self.order['id']}/transactions/{self.order['transactions'][0]['id']}"
            self.shop.call("POST", f"{transaction}/{step}/", body)

    def create(self, method: str | None = None, **fields: Any) -> None:
        """Create an order, with an attempt that has the fields of ``attempt``."""
        attempt = {"payment_method": method, **fields.pop("attempt", {})}
        body = {"currency": "EUR", "amount": 1295, **fields}
        self.order = self.shop.call(
            "POST", "/v1/orders/", {**body, "transactions": [attempt]} if method else body
        )

    def begin_series(self) -> None:
        """Pay the first order of a series, and create the second one a month later."""
        self.create("credit-card", attempt={"payment_method_details": {"recurring_type": "first"}})
        self.play("customer pay")
        read = self.shop.call("GET", f"/v1/orders/{self.order['id']}/")
        token = read["transactions"][0]["payment_method_details"]["vault_token"]
        self.play("P1M")
        details = {"recurring_type": "recurring", "vault_token": token}
        self.create("credit-card", attempt={"payment_method_details": details})

    def scan_code(self) -> None:
        """Create a QR code, and scan it, which creates an order."""
        code = self.shop.call("POST", "/v1/bankqr/", {"amount": 1295})
        self.order = self.shop.call("POST", f"/control/bankqr/{code['id']}/scan/", {})

    def fail_webhooks(self) -> None:
        """Answer the first attempt of the last webhook with an error, and create an order."""
        rules = [{"when": {"status": "completed", "attempt": 1}, "then": {"answer": 503}}]
        self.shop.call("PUT", "/control/faults/", {"webhooks": rules})
        self.create("credit-card")

    def _read(self, order_id: str) -> None:
        self.shop.call("GET", f"/v1/orders/{order_id}/")


Step = str | tuple[str, dict[str, Any]]
"""A step without or with a body."""


class Script(NamedTuple):
    """A flow: its title, what creates its order, its further steps, and the mode of its project."""

    title: str
    begin: Callable[[Flow], None]
    steps: Sequence[Step]
    mode: str = "test"


def order(method: str | None = None, **fields: Any) -> Callable[[Flow], None]:
    """Begin a flow with a new order."""
    return lambda flow: flow.create(method, **fields)


FLOWS: Final[Mapping[str, Script]] = {
    "hosted-page": Script(
        "A customer chooses a method on the hosted page and pays",
        order(order_lines=LINES),
        ("customer visit", ("customer choose", {"payment_method": "credit-card"}), "customer pay"),
    ),
    "redirect": Script(
        "A customer pays at their bank",
        order("bank-redirect-nl", attempt={"payment_method_details": {"issuer_id": "SBXANL2A"}}),
        ("customer visit", "PT40S", "customer pay"),
    ),
    "authorization-and-capture": Script(
        "A card is authorized, captured in part, and voided",
        order("credit-card", attempt={"capture_mode": "manual", "expiration_period": "P7D"}),
        ("customer pay", "P2D", ("captures/amount", {"amount": 1000}), ("voids/amount", {"amount": 295})),
    ),
    "one-click-and-recurring": Script(
        "The second payment of a series takes place without the customer", Flow.begin_series, ("PT1M",)
    ),
    "pay-later": Script(
        "The screening passes, the customer authorizes, the shop captures",
        order("pay-later-a", order_lines=LINES, customer=CUSTOMER),
        ("customer visit", "customer pay", "P1D", "captures"),
    ),
    "bank-transfer": Script(
        "A bank transfer arrives two days later", order("bank-transfer"), ("P2D", "bank credit"), "live"
    ),
    "bank-qr": Script("A payer scans a QR code and pays", Flow.scan_code, ("customer pay",)),
    "refunds": Script(
        "A partial refund, and a refused refund of more than the remaining amount",
        order("credit-card"),
        ("customer pay", "P3D", ("refunds", {"amount": 500}), ("refunds", {"amount": 5000})),
    ),
    "webhooks": Script(
        "A webhook is answered with an error and retried", Flow.fail_webhooks, ("customer pay", "PT2M")
    ),
}


def draw_flow(name: str) -> str:
    """Draw a flow as an SVG file."""
    script = FLOWS[name]
    flow = Flow(mode=script.mode)
    script.begin(flow)
    for step in script.steps:
        name, body = (step, {}) if isinstance(step, str) else step
        flow.play(name, **body)
    drawing = draw_sequence(history(flow.project.epoch, flow.order["id"]))
    return svg(drawing, title=script.title, is_file=True)
