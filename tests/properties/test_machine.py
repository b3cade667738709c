"""Random sequences of operations and advances keep the books balanced."""

import itertools
import os
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations import authorizations
from payment_sandbox.operations.act import act, act_on_attempt
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.cancel import cancel
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.move_clock import advance_clock
from payment_sandbox.operations.refund import refund
from payment_sandbox.operations.update import update
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.refusals import Invalid, Refusal
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.orders.webhooks import ATTEMPTS_MAX, Reply, WebhookRequest
from payment_sandbox.projects.project import Project
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.services import ServerServices
from payment_sandbox.web.answers.order_tables import amount_details
from tests.support.driver import LINES
from tests.support.projects import made_project

EXAMPLES = int(os.environ.get("SANDBOX_EXAMPLES", "300"))
STEPS = 60
MODES = st.sampled_from(["manual", "manual", "delayed"])
AMOUNTS = st.integers(1, 2100)
QUANTITIES = st.lists(
    st.builds(LineQuantity, st.sampled_from(["socks", "post", "socks", "post", "hat"]), st.integers(1, 4)),
    min_size=1,
    max_size=3,
)
ACTS = [Action(actor, name) for actor, names in ACTIONS.items() for name in names]
TAKES = st.one_of(
    st.just(authorizations.capture_remainder()),
    st.builds(lambda amount: authorizations.capture_amount(amount, None), AMOUNTS),
    st.builds(lambda lines: authorizations.capture_lines(lines, None), QUANTITIES),
    st.builds(lambda amount: authorizations.void_amount(amount, None), AMOUNTS),
    st.builds(lambda lines: authorizations.void_lines(lines, None), QUANTITIES),
)


def snapshot(project: Project) -> Any:
    """Return the state that a refused call must not change."""
    return (
        {order.id: (order, order.version) for order in orders_of(project)},
        [(due.at, due.sequence) for due in project.epoch.timeline],
        [(delivery.id, len(delivery.attempts)) for delivery in project.epoch.store.deliveries()],
        project.epoch.state,
        project.epoch.timeline.now,
    )


def orders_of(project: Project) -> list[Order]:
    """Return all orders and refunds."""
    return [project.find_order(order_id) for order_id in project.epoch.store.order_ids()]


class Books(RuleBasedStateMachine):
    """A project with random acts of its customers, banks and merchant."""

    orders = Bundle("orders")
    steps = 0

    @initialize(
        target=orders,
        mode=st.sampled_from(["test", "live"]),
        authorized_status=st.sampled_from(["completed", "accepted"]),
    )
    def create_project(self, mode: str, authorized_status: str) -> Any:
        """Create a project with an order and a shop with a variable response."""
        self.answer = 200
        self.courier = Courier(send=self.send)
        self.project = made_project(
            datetime(2028, 1, 31, 12, tzinfo=UTC),
            ServerServices(self.courier),
            mode=mode,
            authorized_status=authorized_status,
            webhook_url="http://shop.example/",
            seed=1,
        )
        self.last_now = self.project.epoch.timeline.now
        return create_order(self.project, {"currency": "EUR", "amount": 1000, "client": {}}).id

    def send(self, request: WebhookRequest, copies: int) -> list[Reply]:
        """Return the shop's replies without a network."""
        return [Reply(0.0, status=self.answer)] * copies

    def try_call(self, call: Any) -> Order | None:
        """Make a call that may be refused, and check that a refusal changes nothing."""
        self.project.settle()
        before = snapshot(self.project)
        try:
            result: Order | None = call()
        except (Refusal, Invalid):
            assert snapshot(self.project) == before
            return None
        return result

    @rule(target=orders, method=st.sampled_from([*METHOD_NAMES, None]), data=st.data())
    def create(self, method: str | None, data: st.DataObject) -> Any:
        """Create an order with any method and capture mode; it may be refused."""
        body: dict[str, Any] = {
            "currency": "EUR",
            "amount": data.draw(st.sampled_from([2000, 2000, 66601, 66602, 1])),
            "client": {},
            "customer": {
                "email_address": data.draw(st.sampled_from(["a@b", "pays@b", "needs-time@b", "fails@b"]))
            },
            "order_lines": LINES,
        }
        if method is not None:
            transaction = {"payment_method": method, "payment_method_details": {"issuer_id": "SBXANL2A"}}
            mode = data.draw(st.sampled_from([None, "manual", "delayed"]))
            period = data.draw(st.sampled_from([None, "PT5M", "P1M"]))
            transaction |= {"capture_mode": mode} if mode else {}
            transaction |= {"expiration_period": period} if period else {}
            body["transactions"] = [transaction]
        order = self.try_call(lambda: create_order(self.project, body))
        return order.id if order is not None else multiple()

    @rule(
        target=orders, method=st.sampled_from(["credit-card", "pay-later-a", "invoice-later-b"]), mode=MODES
    )
    def authorize(self, method: str, mode: str) -> Any:
        """Create an order and authorize it, because most rules apply to authorized orders."""
        transaction = {"payment_method": method, "capture_mode": mode, "expiration_period": "P1M"}
        body = {
            "currency": "EUR",
            "amount": 2000,
            "client": {},
            "customer": {"country": "NL"},
            "order_lines": LINES,
            "transactions": [transaction],
        }
        order = create_order(self.project, body)
        if order.status == "new":
            act(self.project, order.id, Action("customer", "pay"))
        return order.id

    @rule(
        target=orders,
        days=st.sampled_from([1, 31]),
        second=st.sampled_from(["credit-card", "pay-later-a"]),
        is_paid=st.booleans(),
    )
    def transfer_late(self, days: int, second: str, is_paid: bool) -> Any:
        """Create a hosted order whose customer chooses a transfer, and another method days later."""
        body = {
            "currency": "EUR",
            "amount": 2000,
            "client": {},
            "customer": {"country": "NL"},
            "order_lines": LINES,
            "expiration_period": "P90D",
        }
        order = create_order(self.project, body).id
        choose = Action("customer", "choose", payment_method="bank-transfer")
        self.try_call(lambda: act(self.project, order, choose))
        advance_clock(self.project, {"by": f"P{days}D"}, AdvanceLimits(1_000_000))
        self.try_call(lambda: act(self.project, order, choose._replace(payment_method=second)))
        if is_paid:
            self.try_call(lambda: act(self.project, order, Action("customer", "pay")))
        return order

    @rule(order=orders, cents=st.none() | AMOUNTS)
    def credit_any_attempt(self, order: str, cents: int | None) -> None:
        """Credit every attempt of an order, also the older ones."""
        credit = Action("bank", "credit", amount_cents=cents)
        for attempt in self.project.find_order(order).transactions:
            self.try_call(partial(act_on_attempt, self.project, order, attempt.id, credit))

    @rule(order=orders, action=st.sampled_from(ACTS), method=st.sampled_from(METHOD_NAMES), amount=AMOUNTS)
    def act_on_order(self, order: str, action: Action, method: str, amount: int) -> None:
        """Do an act of a customer, bank, screening or processor."""
        varied_action = action._replace(payment_method=method, amount_cents=amount if amount % 2 else None)
        self.try_call(lambda: act(self.project, order, varied_action))

    @rule(order=orders, take=TAKES)
    def capture_or_void(self, order: str, take: Any) -> None:
        """Capture or void in full, by amount or by lines."""
        current = self.project.epoch.store.order(order)
        if current is not None and current.transactions:
            transaction = current.transactions[-1].id
            self.try_call(
                lambda: authorizations.apply_to_ledger(self.project, order, transaction, take, None)[0]
            )

    @rule(target=orders, order=orders, amount=st.none() | AMOUNTS, lines=st.none() | QUANTITIES)
    def refund(self, order: str, amount: int | None, lines: list[LineQuantity] | None) -> Any:
        """Refund an amount, lines or the remainder; the refund is an order for the other rules."""
        body: dict[str, Any] = {"amount": amount} if amount is not None else {}
        if lines is not None:
            body["order_lines"] = [line._asdict() for line in lines]
        record = self.try_call(lambda: refund(self.project, order, body, None).record)
        return record.id if record is not None else multiple()

    @rule(order=orders)
    def cancel(self, order: str) -> None:
        """Cancel an order; refused after a payment."""
        self.try_call(lambda: cancel(self.project, order, None))

    @rule(order=orders, amount=AMOUNTS)
    def update(self, order: str, amount: int) -> None:
        """Update an order; refused after an act of the customer."""
        self.try_call(lambda: update(self.project, order, {"amount": amount}, (), None))

    @rule(by=st.sampled_from(["PT1S", "PT2M", "PT5M", "PT1H", "P2D", "P1M", "P1Y"]))
    def advance(self, by: str) -> None:
        """Advance the clock by a period."""
        advance_clock(self.project, {"by": by}, AdvanceLimits(1_000_000))

    @rule(until=st.sampled_from(["next", "idle"]))
    def advance_until(self, until: str) -> None:
        """Advance the clock to the next or the last event."""
        advance_clock(self.project, {"until": until}, AdvanceLimits(1_000_000))

    @rule(status=st.sampled_from([200, 302, 404, 500]))
    def change_response(self, status: int) -> None:
        """Change the shop's response."""
        self.answer = status

    @invariant()
    def the_books_balance(self) -> None:
        """Captured + voided + remaining = original, and refunds do not exceed captures."""
        Books.steps += 1
        for order in orders_of(self.project):
            details = amount_details(order)
            assert details["captured"] + details["voided"] + details["remaining"] == details["original"]
            assert min(details.values()) >= 0
            assert 0 <= refundable_cents(order) <= order.received_cents
            if order.received_cents >= order.amount_cents:
                assert not any(a.is_open or a.is_capturable for a in order.transactions), (
                    "a paid order must not accept another payment"
                )
            for attempt in order.transactions:
                ledger = attempt.authorization
                if ledger is not None:
                    parts = (ledger.captured_cents, ledger.voided_cents, ledger.remaining_cents)
                    assert sum(parts) == ledger.original_cents == attempt.amount_cents
                    assert min(parts) >= 0
                    assert all(entry.amount_cents > 0 for entry in ledger.entries)

    @invariant()
    def statuses_follow_the_tables(self) -> None:
        """Every status is in the tables, and so is every transition between events of a transaction."""
        for order in orders_of(self.project):
            assert order.status in ORDER_TRANSITIONS
            for attempt in order.transactions:
                path = [event.event for event in attempt.events]
                assert path[-1] == attempt.status
                for before, after in itertools.pairwise(path):
                    assert after in TRANSACTION_TRANSITIONS[before].values()

    @invariant()
    def deliveries_are_bounded_and_time_is_monotonic(self) -> None:
        """Deliveries have ten attempts at most, and the clock never goes back."""
        self.project.settle()
        assert all(len(each.attempts) <= ATTEMPTS_MAX for each in self.project.epoch.store.deliveries())
        assert self.project.epoch.timeline.now >= self.last_now
        self.last_now = self.project.epoch.timeline.now

    def teardown(self) -> None:
        """Stop the courier's thread."""
        if hasattr(self, "courier"):
            self.courier.stop()


def test_random_sequences_keep_the_books() -> None:
    """The books balance after each of at least 10,000 random steps."""
    Books.steps = 0
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Books.steps >= 40 * EXAMPLES
